import type { Owner, Question, Result } from "../../../runtime/index.ts";
import type { CensusHerd } from "./conduct.ts";

/** Whom a census is taken for: a person at a terminal, or whoever reads the output later. */
export interface Audience {
  /** Called once, before anything happens. */
  watch(herd: CensusHerd, owner: Owner<string>): void;
  begin(folder: string, requestId: string, how: "begins" | "goes on"): void;
  /** The answer, or undefined when nobody gives one now. */
  ask(question: Question): Promise<string | undefined>;
  /** Shows the result; resolves when it is out. */
  tell(result: Result): Promise<void>;
  /** What to say of a question that stays open, with the command that answers it. */
  waiting(question: Question, command: string): string;
  close(): void;
}
