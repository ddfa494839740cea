import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../machines/vocabulary.ts";
import type { Engine } from "../engine.ts";
import type { AskRecord } from "../kernel/records.ts";
import { keys } from "../store/keys.ts";
import { closeChain } from "./chain.ts";
import type { ExpiryRow } from "./expiry-row.ts";
import { EXPIRED } from "./formats.ts";

/** Whether this is what stands for an answer that never came. */
export function isExpired(answer: unknown): boolean {
  return isDeepStrictEqual(answer, EXPIRED);
}

/**
 * An ask has passed its deadline: its run is torn down with everything that waits for it, or goes on with `EXPIRED`. An
 * answer that was accepted before wins, and nothing happens.
 * @param key the due row, which goes in the same batch.
 */
export async function expire(engine: Engine, key: string, askId: string, { tree, runId }: ExpiryRow): Promise<void> {
  await engine.kernel.run(
    tree,
    (step) => {
      const ask = step.read<AskRecord>(keys.ask(askId));
      const worker = step.worker(runId);
      if (ask?.parked === undefined || ask.answer || ask.abandoned) return step.del(key);
      // A worker whose record cannot be read may be brought back; one that is gone needs nothing.
      if (worker === undefined) return step.tree.unknown.length > 0 ? undefined : step.del(key);
      const { label } = worker.context;
      if (ask.parked.onExpiry === "resume") {
        engine.runs.answers(step, runId);
        step.send(runId, { type: "reply", askId, message: { ...EXPIRED } as Json, files: [], at: step.now });
      } else {
        closeChain(engine, step, runId, {
          code: "expired",
          message: `The question of "${label}" was not answered in time.`,
        });
      }
      step.after(() =>
        engine.events.emit("expired", {
          askId,
          requestId: ask.requestId,
          groupId: ask.parked?.groupId ?? askId,
          label,
          expiredAt: new Date(ask.parked?.expiresAt ?? 0).toISOString(),
        }),
      );
    },
    { operation: "expire" },
  );
}
