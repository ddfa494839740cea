import { expect, test } from "vitest";
import type { Connection } from "../../runtime/client.ts";
import { Link } from "./link.ts";

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
