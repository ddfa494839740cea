import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** What every worker's model is told beside its role. */
const WORKER = `You work for an owner who gave you one task. The text of your last message is your result: the owner reads
that and nothing else of this session, so put everything into it that was asked for.

When you need a decision that only your owner can take, call ask_owner with one question. It has to be the only tool call
of its message. Your turn ends there; the answer arrives as a message, and you go on with the same task. Do not guess the
answer, and do not end your work while a question is open.
`;

const DELEGATES = `
You may delegate parts of your task with the subagent tool. Results and questions of your workers arrive as messages: when
nothing is left to do until then, end your turn instead of polling. Your own result is due when you have all of theirs.
`;

/** The prompt files of worker processes: private, and there only while the process starts. */
export class PromptFiles {
  readonly #folder: string;

  constructor(directory: string) {
    this.#folder = join(directory, "prompts");
  }

  /** Writes those of one start. @returns their paths; no role without a text. */
  async write(
    runId: string,
    { role, delegates }: { role: string; delegates: boolean },
  ): Promise<{ workerPrompt: string; rolePrompt?: string }> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const workerPrompt = this.#file(runId, "worker");
    await writeFile(workerPrompt, delegates ? WORKER + DELEGATES : WORKER, { mode: 0o600 });
    if (role.trim() === "") return { workerPrompt };
    const rolePrompt = this.#file(runId, "role");
    await writeFile(rolePrompt, role, { mode: 0o600 });
    return { workerPrompt, rolePrompt };
  }

  async remove(runId: string): Promise<void> {
    await Promise.all(["worker", "role"].map((kind) => rm(this.#file(runId, kind), { force: true })));
  }

  /** Those that a host left which was killed. */
  async removeAll(): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  #file(runId: string, kind: string): string {
    return join(this.#folder, `${runId}.${kind}.md`);
  }
}
