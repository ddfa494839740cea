/** What a label looks like. Source: the `subagent` API, "Common request fields". */
export const LABEL_PATTERN = /^[a-z][a-z0-9_-]{0,31}$/;
