import type { ExtensionContext } from "@earendil-works/pi-coding-agent";

/** Where every copy of this extension in a process looks, whichever loaded it. */
const CLAIMS = Symbol.for("pi-herd.sessions");

/**
 * One copy of the extension looks after a session: the first that comes. Another one, from a second installation, stays
 * silent beside it.
 * @returns how to give the session back; undefined when another copy has it.
 */
export function claimSession(ctx: ExtensionContext): (() => void) | undefined {
  const shared = globalThis as { [CLAIMS]?: Set<string> };
  const claims = (shared[CLAIMS] ??= new Set());
  const session = ctx.sessionManager.getSessionId();
  if (claims.has(session)) return undefined;
  claims.add(session);
  return () => claims.delete(session);
}
