import { expect, test } from "vitest";
import type { Connection } from "../../runtime/client.ts";
import { Link } from "./link.ts";

const linkTo = (open: () => Promise<Connection | undefined>) =>
  new Link({ open, greet: async () => undefined, lost: () => false, failed: () => undefined });

test("a call that nobody waits for any more ends, also while its host is still being started", async () => {
  const link = linkTo(() => new Promise(() => undefined));
  const given = new AbortController();
  const call = link.call("owner/list", {}, { signal: given.signal });
  given.abort(new Error("given up"));
  await expect(call).rejects.toThrow("given up");
  await link.close(0);
});

test("a tool's answer that its host is just leaving is not taken: the next host carries the call out", async () => {
  const answers = [{ ok: false, error: { reason: "herd_closed" } }, { ok: true }];
  const request = async () => answers.shift();
  const ended = new Promise<void>(() => undefined);
  const link = linkTo(async () => ({ isOpen: true, ended, request, close: async () => undefined }) as never);
  expect(await link.call("owner/subagent", {})).toEqual({ ok: true });
  await link.close(0);
});

test("a connection whose greeting ends after the link was closed is closed too", async () => {
  let closed = 0;
  const connection = {
    isOpen: true,
    ended: new Promise<void>(() => undefined),
    close: async () => void closed++,
  } as unknown as Connection;
  const greeting = Promise.withResolvers<void>();
  const link = new Link({
    open: async () => connection,
    greet: () => greeting.promise,
    lost: () => true,
    failed: () => undefined,
  });
  const connecting = link.connect();
  await new Promise((done) => setImmediate(done));
  await link.close(0);
  greeting.resolve();
  await connecting.catch(() => undefined);
  expect(closed).toBe(1);
});
