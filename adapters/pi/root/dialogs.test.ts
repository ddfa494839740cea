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
