import type { Command } from "commander";
import type { AssignmentStatus } from "../../../runtime/index.ts";
import { EXIT, Refusal } from "../errors.ts";
import { commandFor } from "../invocation.ts";
import { show, snakeCase, withCommonOptions, type CommonOptions } from "../output.ts";
import { withHerd } from "../reach.ts";
import { visible, visibleLines } from "../terminal/text.ts";

/** `herd result`: what an assignment came to. Its owner still gets it. */
export function addResult(program: Command): void {
  withCommonOptions(
    program
      .command("result")
      .description("print the result of an assignment; its owner still gets it")
      .argument("<request>", "the assignment's request id"),
  ).action(async (requestId: string, options: CommonOptions) => {
    await withHerd(options.directory, { reads: true }, async ({ herd }) => {
      const status = await (await herd.assignment(requestId)).status({ acknowledge: false });
      const { result } = status;
      if (options.json || result?.status === "completed") {
        await show(options, inJson(status), () => result?.text ?? "");
      } else throw new Refusal(whyNone(status, options));
      if (result?.status !== "completed") process.exitCode = EXIT.refused;
    });
  });
}

function inJson({ question, result, ...status }: AssignmentStatus): Record<string, unknown> {
  return {
    ...snakeCase({ ...status }),
    ...(question && { question: { ask_id: question.askId, question: question.question } }),
    ...(result && {
      result: { ...snakeCase({ ...result }), ...(result.usage && { usage: snakeCase({ ...result.usage }) }) },
    }),
  };
}

function whyNone({ label, state, question, diagnostic, result }: AssignmentStatus, options: CommonOptions): string {
  const who = `"${visible(label)}"`;
  if (result?.error) return `${who} ${result.status}: ${result.error.code}: ${visibleLines(result.error.message)}`;
  if (question) {
    return `${who} has no result yet: it asks: ${visibleLines(question.question)}\nNext: ${commandFor(options.directory, "reply", label, '"…"')}`;
  }
  return `${who} has no result yet: it is ${diagnostic ?? state}. Next: ${commandFor(options.directory, "watch")} shows how it goes on.`;
}
