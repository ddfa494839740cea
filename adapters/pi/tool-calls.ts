import type { ToolCallEvent, ToolCallEventResult } from "@earendil-works/pi-coding-agent";

/**
 * Which tools the model calls in its last message. Pi prepares every call of a message before it carries out the first, so
 * what is known when the message ends can still refuse them all.
 */
export class ToolCalls {
  /** Tools that have to be called alone, by the model itself. */
  readonly #alone: ReadonlySet<string>;
  #names: readonly string[] = [];

  constructor(alone: readonly string[]) {
    this.#alone = new Set(alone);
  }

  /** The names of all calls of the last message. */
  get names(): string[] {
    return [...this.#names];
  }

  /** A message of the model is complete. */
  noted(content: readonly { type: string; name?: string }[]): void {
    this.#names = content.flatMap(({ type, name }) => (type === "toolCall" && name !== undefined ? [name] : []));
  }

  /** Whether a call may be carried out: none of a message that holds one which has to stand alone, beside others. */
  refusal({ toolName, parentToolCallId }: ToolCallEvent): ToolCallEventResult | undefined {
    if (parentToolCallId !== undefined) {
      if (!this.#alone.has(toolName)) return undefined;
      return blocked(`${toolName} was not carried out: call it directly, not from within another tool.`);
    }
    const alone = this.#names.find((name) => this.#alone.has(name));
    if (alone === undefined || this.#names.length === 1) return undefined;
    return blocked(
      `No call of this message was carried out: ${alone} has to be the only tool call of its message. ` +
        "Call the others first if you still need them, then ask alone.",
    );
  }
}

function blocked(reason: string): ToolCallEventResult {
  return { block: true, reason };
}
