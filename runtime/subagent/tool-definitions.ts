import { LABEL_PATTERN } from "../../machines/label.ts";

/** What a model is told of a tool, with its input as JSON schema. */
export interface ToolDefinition {
  name: string;
  description: string;
  inputSchema: object;
}

const text = (description: string) => ({ type: "string", description });
const files = { type: "array", items: { type: "string" }, description: "Paths of supporting files." };

/** The model-facing tools, for programs that run a model themselves. */
export const tools = {
  askOwner: {
    name: "ask_owner",
    description:
      "Ask your direct owner for one decision that you need to continue this task. It must be the only tool call of " +
      "your turn; then stop and wait. Do not guess the answer.",
    inputSchema: {
      type: "object",
      properties: { question: { type: "string", description: "One decision, with its options." }, files },
      required: ["question"],
      additionalProperties: false,
    },
  },
  subagent: {
    name: "subagent",
    description:
      "Delegate work to other workers: list them, assign a task, reply to a question, close one. Results arrive on " +
      "their own; do not poll.",
    inputSchema: {
      type: "object",
      properties: {
        action: { type: "string", enum: ["list", "assign", "steer", "reply", "close"] },
        agent: text("assign: start a fresh worker of this definition."),
        session: text("assign: go on with a saved session, by its exact path or full id."),
        label: {
          ...text(
            "Which worker: its exact label. For a new one optional; alone in assign: give a ready worker its next task.",
          ),
          pattern: LABEL_PATTERN.source,
        },
        cwd: text("assign: where a fresh worker works; yours unless set."),
        task: text("assign: everything the worker needs to know, with what it should hand back."),
        files,
        reusable: { type: "boolean", description: "assign: keep the worker for further tasks after its result." },
        fork: text("assign: begin with a copy of a saved session, by its exact path or full id."),
        timeoutMs: {
          type: "integer",
          minimum: 5_001,
          maximum: 300_000,
          description: "assign: the whole budget of the start, in milliseconds.",
        },
        message: text("steer: what changes in the current task. reply: the answer to the worker's question."),
      },
      required: ["action"],
      additionalProperties: false,
    },
  },
  listParked: {
    name: "list_parked",
    description:
      "List everything that is parked on your subject: questions that runs ask their caller, and outcomes that nobody " +
      "has taken yet.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
  },
  resumeParked: {
    name: "resume_parked",
    description:
      "Answer one parked question, and get what its run comes to next. Without a payload: take a waiting outcome, once.",
    inputSchema: {
      type: "object",
      properties: {
        interaction_id: text("The id of the entry, exactly as list_parked gives it."),
        payload: { description: "The answer, as the question's answer_format and format_payload say." },
      },
      required: ["interaction_id"],
      additionalProperties: false,
    },
  },
  cancelParked: {
    name: "cancel_parked",
    description: "Give up parked entries for good: each run that asks, with every run that waits for it.",
    inputSchema: {
      type: "object",
      properties: { ids: { type: "array", items: { type: "string" }, description: "The ids of the entries." } },
      required: ["ids"],
      additionalProperties: false,
    },
  },
} satisfies Record<string, ToolDefinition>;
