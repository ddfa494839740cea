import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { HERD, LIST_ENTRY, type HerdDetails } from "./branch.ts";
import { claimSession } from "./copies.ts";
import { Looks, type Parts } from "./looks.ts";
import type { RootSession } from "./root/session.ts";
import type { WorkerSession } from "./worker/session.ts";
import { workerIdentity } from "./worker/identity.ts";

/** What a Pi session is to the herd; one with nothing of it is unmanaged. */
type Managed = { worker: WorkerSession } | { root: RootSession };

/**
 * The extension. What a session is shows when it starts: a worker that a host has started, or a root session, which owns
 * workers. What a worker starts itself is neither, and gets nothing. Everything is taken anew at each start of a session;
 * nothing of one reaches the next.
 */
export function herdExtension(pi: ExtensionAPI, loadParts: () => Promise<Parts>): void {
  const looks = new Looks(loadParts);
  let managed: Managed | undefined;
  let release = () => {};

  pi.registerMessageRenderer<HerdDetails>(HERD, ({ content, details }, options, theme) =>
    looks.message(details, typeof content === "string" ? content : "", options, theme),
  );

  // What an extension has registered under that name it draws itself.
  pi.registerToolRenderer((name, next) => next() ?? looks.known(name));

  pi.registerEntryRenderer<{ text: string }>(LIST_ENTRY, ({ data }) => looks.list(data?.text ?? ""));

  pi.on("session_start", async (_event, ctx) => {
    const claim = claimSession(ctx);
    if (claim === undefined) return;
    release = claim;
    if (ctx.mode === "tui") await looks.ready();
    managed = await begin(ctx);
  });

  async function begin(ctx: ExtensionContext): Promise<Managed | undefined> {
    const identity = workerIdentity(process.env);
    if (identity?.session === ctx.sessionManager.getSessionId()) {
      // What a session does not need is not loaded for it.
      const { WorkerSession } = await import("./worker/session.ts");
      const worker = new WorkerSession(pi, ctx, identity, looks);
      managed = { worker };
      await worker.start();
      return managed;
    }
    // Started by a worker, or by a tool of another session: it is theirs.
    if (identity !== undefined || process.env["PI_SESSION_ID"] !== undefined) return undefined;
    const { RootSession } = await import("./root/session.ts");
    const root = new RootSession(pi, ctx, looks);
    managed = { root };
    await root.start();
    return managed;
  }

  const worker = () => (managed && "worker" in managed ? managed.worker : undefined);
  const root = () => (managed && "root" in managed ? managed.root : undefined);

  pi.on("message_end", (event) => {
    worker()?.messageEnd(event);
    root()?.messageEnd(event);
  });
  pi.on("tool_call", (event) => worker()?.toolCall(event));
  pi.on("agent_start", () => {
    worker()?.agentStart();
    root()?.agentStart();
  });
  pi.on("agent_settled", (event) => {
    worker()?.agentSettled(event);
    root()?.agentSettled();
  });
  pi.on("agent_before_settle", (event) => root()?.beforeSettle(event));
  pi.on("message_update", () => worker()?.active());
  pi.on("tool_execution_start", () => worker()?.active());
  pi.on("tool_execution_update", () => worker()?.active());
  pi.on("tool_execution_end", () => worker()?.active());
  pi.on("ui_prompt_start", (event) => worker()?.dialogOpened(event));
  pi.on("ui_prompt_end", () => worker()?.dialogOver());
  pi.on("session_tree", () => root()?.navigated());
  pi.on("model_select", () => root()?.changed());
  pi.on("thinking_level_select", () => root()?.changed());
  // A worker's session is its own for as long as it lives.
  pi.on("session_before_switch", () => (worker() ? { cancel: true } : undefined));
  pi.on("session_before_fork", () => (worker() ? { cancel: true } : undefined));
  pi.on("session_shutdown", async () => {
    const ending = managed;
    managed = undefined;
    release();
    release = () => {};
    if (ending && "worker" in ending) await ending.worker.shutdown();
    else await ending?.root.shutdown();
  });
}
