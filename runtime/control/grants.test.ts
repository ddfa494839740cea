import { describe, expect, test } from "vitest";
import { folder, open, refusal } from "../../test/support/control.ts";
import { connectHerd, HerdError, type ControlClient, type ControlOptions } from "../index.ts";
import { Connection } from "./connection.ts";

/** A herd that lets in whoever shows one of these tokens. */
async function guarded(more: Partial<ControlOptions> = {}) {
  const directory = folder();
  const control: ControlOptions = {
    token: "person",
    admit(token) {
      if (token === "person") return { role: "person" };
      if (token === "ada") return { role: "owner", id: "ada" };
      if (token === "eyes") return { role: "observer" };
      if (token === "worker") return { role: "guest", subject: "run-1" };
      throw new HerdError({
        category: "invalid_request",
        reason: "bad_token",
        message: "This token lets nobody in",
        nextAction: "get a new one",
      });
    },
    ...more,
  };
  const { herd } = await open({ directory, control });
  return { directory, herd };
}

describe("a herd that says who may do what", () => {
  test("lets its user's own clients do everything, by the token beside its address", async () => {
    const { directory } = await guarded();
    const herd = await connectHerd({ directory });
    expect(await herd.owners()).toEqual([]);
    await herd.close();
  });

  test("tells whoever shows no good token why it is not let in", async () => {
    const { directory } = await guarded();
    expect(await refusal(connectHerd({ directory, token: "forged" }))).toMatchObject({
      reason: "bad_token",
      message: "This token lets nobody in. Next: get a new one.",
    });
  });

  test("lets an owner act for itself and for nobody else", async () => {
    const { directory } = await guarded();
    const herd = await connectHerd({ directory, token: "ada" });
    expect((await herd.owner("ada").list()).workers).toEqual([]);
    for (const call of [
      () => herd.owner("bob").list(),
      () => herd.owner({ scope: "shop", keys: { ada: "ada" } }).list(),
      () => herd.owner("bob").assign({ agent: "any", task: "work" }),
      () => herd.owners(),
      () => herd.parked({ scope: "owner", keys: { id: "bob" } }),
      () => herd.backup("elsewhere"),
      () => herd.inbox.list(),
    ]) {
      expect(await refusal(call())).toMatchObject({ category: "invalid_request", reason: "not_granted" });
    }
    expect(await herd.owner("bob").subagent({ action: "list" })).toMatchObject({
      ok: false,
      error: { reason: "not_granted" },
    });
    await herd.close();
  });

  test("lets an observer read, and nothing else", async () => {
    const { directory } = await guarded();
    const herd = await connectHerd({ directory, token: "eyes" });
    expect((await herd.owner("ada").list()).workers).toEqual([]);
    expect(await herd.owners()).toEqual([]);
    for (const call of [
      () => herd.owner("ada").close({ label: "worker" }),
      () => herd.owner("ada").reply({ label: "worker", message: "yes" }),
      () => herd.take({ scope: "owner", keys: { id: "ada" } }),
      () => herd.tick(),
    ]) {
      expect(await refusal(call())).toMatchObject({ reason: "not_granted" });
    }
    await herd.close();
  });

  test("lets a guest call what its program offers, and tells the program who that is", async () => {
    const seen: unknown[] = [];
    const { directory } = await guarded({
      methods: {
        "house/greet": (says, { grant, version, pid }) => {
          seen.push({ says, grant, version, pid });
          return { hello: "guest" };
        },
        "house/refuse": () => {
          throw new HerdError({ category: "worker_busy", reason: "shut", message: "Shut", nextAction: "wait" });
        },
      },
    });
    const guest = await Connection.open(directory, { token: "worker", version: "9.9.9" });
    expect(await guest.request("house/greet", { how: "loud" })).toEqual({ hello: "guest" });
    expect(seen).toEqual([
      { says: { how: "loud" }, grant: { role: "guest", subject: "run-1" }, version: "9.9.9", pid: process.pid },
    ]);
    expect(await refusal(guest.request("house/refuse", {}))).toMatchObject({ reason: "shut" });
    expect(await refusal(guest.request("house/nothing", {}))).toMatchObject({ reason: "control_version" });
    const own = { owner: { id: "run-1" }, cwd: "/" };
    expect(await refusal(guest.call("owner/list", own))).toMatchObject({ reason: "not_granted" });
    await guest.close(1_000);
  });

  test("calls and tells its clients, and hears when they are gone", async () => {
    const { promise: client, resolve } = Promise.withResolvers<ControlClient>();
    const { directory } = await guarded({ connected: resolve });
    const guest = await Connection.open(directory, { token: "worker" });
    const heard = Promise.withResolvers<unknown>();
    guest.serve("guest/do", async (says) => {
      if ((says as { work: string }).work === "bad") throw new Error("I will not");
    });
    guest.listen("guest/know", (notice) => heard.resolve(notice));
    const seen = await client;
    await seen.call("guest/do", { work: "good" });
    await expect(seen.call("guest/do", { work: "bad" })).rejects.toThrow("I will not");
    seen.tell("guest/know", { news: 1 });
    expect(await heard.promise).toEqual({ news: 1 });
    const gone = new Promise((done) => seen.gone.addEventListener("abort", done));
    await guest.close(1_000);
    await gone;
    // Nobody is left to hear it, which is no fault of who says it.
    seen.tell("guest/know", { news: 2 });
    await expect(seen.call("guest/do", { work: "good" })).rejects.toThrow(/closed|disposed/);
  });
});
