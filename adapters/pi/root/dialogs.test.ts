import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, onTestFinished, test } from "vitest";
import { DialogDesk } from "./dialogs.ts";

/** Everything is done by then that waits for no time. */
const nextLoop = () => new Promise((done) => setImmediate(done));

test("an answer that fails after the session was left ends no Pi", async () => {
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  const before = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", note);
  onTestFinished(() => {
    process.removeAllListeners("unhandledRejection");
    for (const listener of before) process.on("unhandledRejection", listener);
  });
  let isStale = false;
  const ctx = {
    get ui() {
      if (isStale) throw new Error("This extension ctx is stale after session replacement or reload.");
      return { confirm: async () => true, notify: () => undefined };
    },
  } as unknown as ExtensionContext;
  const { promise, reject } = Promise.withResolvers<void>();
  const desk = new DialogDesk(ctx, () => promise);
  desk.opened({ id: "d", runId: "r", label: "w", method: "confirm", title: "Sure?" });
  await nextLoop();
  desk.close();
  isStale = true;
  reject(new Error("The background process of the herd cannot be reached"));
  await nextLoop();
  expect(unhandled).toEqual([]);
});

test("a dialog that nobody waits for any more leaves the screen, gets no answer, and lets the next one be shown", async () => {
  const said: string[] = [];
  const editing = Promise.withResolvers<string | undefined>();
  const ui = {
    confirm: (title: string, _message: string, { signal }: { signal: AbortSignal }) => {
      said.push(title);
      return new Promise<boolean>((done) => signal.addEventListener("abort", () => done(false)));
    },
    // Pi's own takes no signal.
    editor: (title: string) => {
      said.push(title);
      return editing.promise;
    },
    notify: (text: string) => void said.push(text),
  };
  const answers: unknown[] = [];
  const desk = new DialogDesk({ ui } as unknown as ExtensionContext, async (...answer) => void answers.push(answer));
  desk.opened({ id: "a", runId: "r", label: "w", method: "confirm", title: "Sure?" });
  await nextLoop();
  desk.clear();
  desk.opened({ id: "b", runId: "r", label: "w", method: "editor", title: "Which text?" });
  await nextLoop();
  desk.closed("b");
  desk.opened({ id: "c", runId: "r", label: "w", method: "confirm", title: "And now?" });
  await nextLoop();
  expect(said).toEqual([
    "w: Sure?",
    "w: Which text?",
    'herd: nobody waits any more for what "w" asked; Esc closes the editor',
  ]);
  editing.resolve("too late");
  await nextLoop();
  expect({ next: said.at(-1), answers }).toEqual({ next: "w: And now?", answers: [] });
});
