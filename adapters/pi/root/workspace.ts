import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

/** The custom entry that keeps a session's workspace. */
const ENTRY = "herd-workspace";

/**
 * What the labels of a session's workers are unique in: Herdr's workspace, else tmux's session, else the session itself.
 * Source: rules of the engine, 2.6.
 */
export function workspaceHere(sessionId: string, env: NodeJS.ProcessEnv = process.env): string {
  const herdr = env["HERDR_WORKSPACE_ID"]?.trim();
  if (herdr) return `herdr:${herdr}`;
  const tmux = env["TMUX"]?.trim();
  return tmux ? `tmux:${tmux}` : sessionId;
}

/** The one of this session: where it was when it first had workers. Opened elsewhere later, it still finds them. */
export function workspaceOf(ctx: ExtensionContext): string {
  for (const entry of ctx.sessionManager.getEntries()) {
    if (entry.type !== "custom" || entry.customType !== ENTRY) continue;
    const { session, workspace } = entry.data as { session: string; workspace: string };
    // A copy of the session is another owner.
    if (session === ctx.sessionManager.getSessionId()) return workspace;
  }
  return workspaceHere(ctx.sessionManager.getSessionId());
}

/** Keeps it, now that the session has workers. */
export function keepWorkspace(pi: ExtensionAPI, ctx: ExtensionContext, workspace: string): void {
  const session = ctx.sessionManager.getSessionId();
  const isKept = ctx.sessionManager
    .getEntries()
    .some(
      (entry) =>
        entry.type === "custom" &&
        entry.customType === ENTRY &&
        (entry.data as { session?: string }).session === session,
    );
  if (!isKept) pi.appendEntry(ENTRY, { session, workspace });
}
