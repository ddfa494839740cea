import { expect, test } from "vitest";
import { createTestHerd } from "../testing/index.ts";
test("asks before it sends, and sends once even when the process dies", async () => {
  const sent: string[] = [];
  const t = await createTestHerd({ now: "2026-11-30T08:00:00Z", agents: { mailer: { description: "m", run: async (_task, worker) => {
    const n = Number(await worker.askOwner({ question: "How many?" }));
    for (let i = 0; i < n; i++) await worker.step("send", () => void sent.push(`m${i}`));
    return `${n} sent`;
  } } } });
  const run = await t.owner.assign({ agent: "mailer", task: "Invite everyone" });
  const question = await t.question();
  await t.crash();
  await t.owner.reply({ askId: question.askId, message: "12" });
  await t.clock.advance("24h");
  await t.idle();
  expect((await t.herd.assignment(run.requestId).then((a) => a.result())).text).toBe("12 sent");
  expect(sent).toHaveLength(12);
  await expect(t.question()).rejects.toThrow(/no question can come/);
});
