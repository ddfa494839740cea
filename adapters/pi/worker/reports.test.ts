import { expect, test } from "vitest";
import { HerdError } from "../../../runtime/client.ts";
import type { WorkerTells } from "../../host/shapes.ts";
import { Reports } from "./reports.ts";

const activity = (requestId: string): WorkerTells => ({ requestId, told: { type: "activity" } });
const settled = (text: string): WorkerTells => ({
  requestId: "request",
  orderId: "order",
  told: { type: "settled", outcome: { status: "completed", text } },
});
const refusal = (reason: string, category: "invalid_request" | "internal_failure" = "invalid_request") =>
  new HerdError({ category, reason, message: "It is refused.", nextAction: "nothing", operation: "report" });

/** A host that refuses what `refuses` gives an error for. */
function host(refuses: (report: WorkerTells) => Error | undefined) {
  const heard: WorkerTells[] = [];
  const said: string[] = [];
  const state = { isOpen: true, refuses };
  const reports = new Reports({
    isOpen: () => state.isOpen,
    tell: async (report) => {
      const error = state.refuses(report);
      if (error) throw error;
      heard.push(report);
    },
    warn: (message) => void said.push(message),
  });
  return { reports, heard, said, state };
}

test("reports are told in their order, and wait while the connection is away", async () => {
  const { reports, heard, state } = host(() => undefined);
  state.isOpen = false;
  for (const id of ["a", "b"]) reports.add(activity(id));
  await reports.told();
  expect(heard).toEqual([]);
  state.isOpen = true;
  reports.add(activity("c"));
  await reports.told();
  expect(heard.map(({ requestId }) => requestId)).toEqual(["a", "b", "c"]);
});

test.each([refusal("connection_lost", "internal_failure"), refusal("bad_token"), new Error("who knows")])(
  "what was not heard stays in its place: $message",
  async (error) => {
    let fails = true;
    const { reports, heard } = host(() => (fails ? error : undefined));
    reports.add(settled("done"));
    reports.add(activity("later"));
    await reports.told();
    expect(heard).toEqual([]);
    fails = false;
    reports.flush();
    await reports.told();
    expect(heard).toEqual([settled("done"), activity("later")]);
  },
);

test("what is refused for good holds nothing up behind it", async () => {
  const { reports, heard, said } = host(({ requestId }) =>
    requestId === "bad" ? refusal("invalid_field") : undefined,
  );
  for (const id of ["bad", "good"]) reports.add(activity(id));
  await reports.told();
  expect(heard).toEqual([activity("good")]);
  expect(said).toHaveLength(1);
});

test("an owner whose worker's result cannot be handed over hears that, and of nothing where that is refused too", async () => {
  const isLong = ({ told }: WorkerTells) => told.type === "settled" && told.outcome.status === "completed";
  const { reports, heard, state, said } = host((report) => (isLong(report) ? refusal("message_too_large") : undefined));
  reports.add(settled("long"));
  await reports.told();
  expect(heard).toEqual([
    {
      requestId: "request",
      orderId: "order",
      told: {
        type: "settled",
        outcome: {
          status: "failed",
          error: { code: "result_too_large", message: expect.stringContaining("It is refused.") },
        },
      },
    },
  ]);
  state.refuses = ({ told }) => (told.type === "settled" ? refusal("invalid_field") : undefined);
  reports.add(settled("long"));
  reports.add(activity("next"));
  await reports.told();
  expect(heard.at(-1)).toEqual(activity("next"));
  expect(said).toHaveLength(3);
});

test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
  "a report that comes %i moments after the one before was heard is told",
  async (hops) => {
    const heard: string[] = [];
    const all = Promise.withResolvers<void>();
    const reports: Reports = new Reports({
      isOpen: () => true,
      tell: ({ told: { type } }) => {
        heard.push(type);
        if (type === "settled") all.resolve();
        const answer = Promise.resolve();
        let later = answer;
        for (let hop = 0; hop < hops; hop++) later = later.then(() => undefined);
        if (type === "activity") void later.then(() => reports.add(settled("done")));
        return answer;
      },
      warn: () => undefined,
    });
    reports.add(activity("a"));
    await all.promise;
    expect(heard).toEqual(["activity", "settled"]);
  },
);

test("what the host could not take just now is told again, though the connection stays and nothing else comes", async () => {
  const { reports, heard, state } = host(() => refusal("undone", "internal_failure"));
  reports.add(settled("done"));
  await reports.told();
  expect(heard).toEqual([]);
  state.refuses = () => undefined;
  await expect.poll(() => heard).toEqual([settled("done")]);
  reports.close();
});
