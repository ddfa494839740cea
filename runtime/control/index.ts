/** The private control socket of a herd, and its client. */
export { Control } from "./server.ts";
export { HerdHost } from "./herd-host.ts";
