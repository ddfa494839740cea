interface Turn {
  group: string | undefined;
  members: number;
  begun: Promise<void>;
  over: Promise<void>;
  end(): void;
}

/** A place in the order of those who want to ask. */
export interface AskPlace {
  /** Resolves when it is its turn. */
  readonly begun: Promise<void>;
  /** Gives it back, whether it was its turn or not. */
  leave(): void;
}

/** One question, or one group of them, at a time: first come, first asked. */
export class AskTurns {
  #last: Turn | undefined;

  /** Takes a place, at once. Those of one group share a turn while any of them has it. */
  take(group?: string): AskPlace {
    const before = this.#last;
    const joins = before !== undefined && before.members > 0 && group !== undefined && before.group === group;
    const turn = joins ? before : after(before, group);
    turn.members++;
    this.#last = turn;
    let over = false;
    const leave = () => {
      if (!over && --turn.members === 0) void turn.begun.then(turn.end);
      over = true;
    };
    return { begun: turn.begun, leave };
  }
}

function after(before: Turn | undefined, group: string | undefined): Turn {
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  return { group, members: 0, begun: before?.over ?? Promise.resolve(), over, end };
}
