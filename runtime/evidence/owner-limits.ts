import type { Kernel } from "../kernel/kernel.ts";
import type { MessageBytes } from "./limits.ts";

/** Whose messages have which limits: those that an owner last named, for all that happens in its trees, else the herd's. */
export class Limits {
  readonly #kernel: Kernel;
  readonly #herd: MessageBytes;
  readonly #owners = new Map<string, Partial<MessageBytes>>();

  constructor(kernel: Kernel, herd: MessageBytes) {
    this.#kernel = kernel;
    this.#herd = herd;
  }

  /** An owner says what its limits are from now on, as long as this process lasts, or nothing of them. */
  note({ treeId, limits }: { treeId: string; limits?: Partial<MessageBytes> }): void {
    if (limits === undefined) return;
    if (Object.keys(limits).length === 0) this.#owners.delete(treeId);
    else this.#owners.set(treeId, limits);
  }

  /** Those of an owner. */
  of(ownerKey: string): MessageBytes {
    return { ...this.#herd, ...this.#owners.get(ownerKey) };
  }

  /** Those of whoever owns a tree that is in memory. */
  in(treeId: string): MessageBytes {
    return this.of(this.#kernel.loaded(treeId)?.ownerKey ?? treeId);
  }
}
