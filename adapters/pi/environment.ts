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

/**
 * A status line that a worker sets when none of its dialogs is open any more: Pi says to nobody that an extension has given
 * one up. It comes with the dialogs themselves, on stdout, so that it is never taken for one that is opened after it.
 */
export const NO_DIALOG = "herd.no-dialog";
