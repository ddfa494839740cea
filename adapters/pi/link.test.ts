import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { HerdError, type Connection } from "../../runtime/client.ts";
import { Link } from "./link.ts";

const linkTo = (open: () => Promise<Connection | undefined>) =>
  new Link({ directory: "/herd", open, greet: async () => undefined, isNeeded: () => false, failed: () => undefined });

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

describe("a link that is needed", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const refused = (reason: string) =>
    new HerdError({ category: "invalid_request", reason, message: `It is ${reason}`, nextAction: "mend it" });

  test("is there once what spoke against it is mended, and says that once", async () => {
    const answers = [refused("bad_key"), refused("bad_key"), refused("not_running"), refused("bad_key")];
    const said: string[] = [];
    const open = async () => {
      const [refusal] = answers;
      if (refusal) throw refusal;
      return { isOpen: true, ended: new Promise<void>(() => undefined), close: async () => undefined } as never;
    };
    const link = new Link({
      directory: "/herd",
      open,
      greet: async () => undefined,
      isNeeded: () => true,
      failed: (message) => void said.push(message),
    });
    await link.reach();
    for (let left = answers.length; left > 0; left--) {
      answers.shift();
      await vi.advanceTimersByTimeAsync(30_000);
    }
    expect({ isOpen: link.isOpen, said }).toEqual({ isOpen: true, said: ["It is bad_key. Next: mend it."] });
    await link.close(0);
  });

  test("says anew what speaks against it after it was there, and tries no more once it is closed", async () => {
    let ends: () => void = () => undefined;
    let tries = 0;
    let refusal: Error | undefined = refused("control_version");
    const said: string[] = [];
    const open = async () => {
      tries++;
      if (refusal) throw refusal;
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      let isOpen = true;
      ends = () => {
        isOpen = false;
        resolve();
      };
      return {
        get isOpen() {
          return isOpen;
        },
        ended,
        close: async () => undefined,
      } as never;
    };
    const link = new Link({
      directory: "/herd",
      open,
      greet: async () => undefined,
      isNeeded: () => true,
      failed: (message) => void said.push(message),
    });
    await link.reach();
    refusal = undefined;
    await vi.advanceTimersByTimeAsync(30_000);
    expect(link.isOpen).toBe(true);
    refusal = refused("control_version");
    ends();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(said).toHaveLength(2);
    const before = tries;
    await link.close(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(tries).toBe(before);
  });
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
    directory: "/herd",
    open: async () => connection,
    greet: () => greeting.promise,
    isNeeded: () => true,
    failed: () => undefined,
  });
  const connecting = link.connect();
  await new Promise((done) => setImmediate(done));
  await link.close(0);
  greeting.resolve();
  await connecting.catch(() => undefined);
  expect(closed).toBe(1);
});
