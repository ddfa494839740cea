/** What a run does and what it waits for, counted, so that the engine knows when it only waits. */
export class Occupation {
  /** Commands on their way to disk, steps, and handlers of children's questions. */
  readonly doing = { running: 0, steps: 0, handlers: 0 };
  /** Calls that wait for the owner's answer, for their turn to ask, for children, or for a run that they visit. */
  readonly waitingFor = { answer: 0, turn: 0, children: 0, visit: 0 };

  /** Something of it is under way, whatever else waits. */
  get acts(): boolean {
    return this.doing.running + this.doing.steps > 0;
  }

  /** Nothing goes on unless somebody else acts. A handler that waits with a question of its own counts as waiting. */
  get onlyWaits(): boolean {
    const { answer, turn, children, visit } = this.waitingFor;
    return !this.acts && answer + turn + children + visit > 0 && this.doing.handlers <= answer + turn;
  }
}
