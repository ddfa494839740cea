/** How a host tells a Pi process that it is a worker. What it starts inherits this, and is no worker of its own. */
export const ENV = {
  /** The host's folder. */
  directory: "PI_HERD_DIRECTORY",
  token: "PI_HERD_TOKEN",
  /** The session that the worker has: another one is not that worker. */
  session: "PI_HERD_SESSION",
  /** `1`: it may start workers of its own. */
  delegates: "PI_HERD_DELEGATES",
} as const;
