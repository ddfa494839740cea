import { LABEL_PATTERN } from "../../machines/vocabulary.ts";
import { HerdError, invalidRequest } from "../errors.ts";
import type { Step } from "../kernel/step.ts";
import { keys } from "../store/keys.ts";

/**
 * The label of a new worker: an explicit one is taken as it is or refused; without one the agent's name is numbered until
 * one is free.
 * @throws HerdError `worker_label_exists`, or `invalid_request` when the agent's name cannot be a label.
 */
export function chooseLabel(
  step: Step,
  workspace: string,
  { explicit, agent, ceiling }: { explicit: string | undefined; agent: string; ceiling: number },
): string {
  const taken = (label: string) => step.read(keys.label(workspace, label)) !== undefined;
  if (explicit !== undefined) {
    if (!taken(explicit)) return explicit;
    throw new HerdError({
      category: "worker_label_exists",
      reason: "worker_label_exists",
      message: `The label "${explicit}" is taken in workspace "${workspace}"`,
      nextAction: "use another label, or leave it out to get a free one",
      operation: "assign",
      ids: { label: explicit },
    });
  }
  for (let number = 1; number <= ceiling; number++) {
    const label = number === 1 ? agent : `${agent}-${number}`;
    if (!LABEL_PATTERN.test(label)) {
      throw invalidRequest(
        "assign",
        "bad_label",
        `"${label}" cannot be a label: it must match ${LABEL_PATTERN.source}`,
        "give the assignment a label of its own",
        { field: "label" },
      );
    }
    if (!taken(label)) return label;
  }
  throw new HerdError({
    category: "worker_label_exists",
    reason: "labels_exhausted",
    message: `All labels from "${agent}" to "${agent}-${ceiling}" are taken in workspace "${workspace}"`,
    nextAction: "give the assignment a label of its own, or acknowledge results that wait",
    operation: "assign",
  });
}
