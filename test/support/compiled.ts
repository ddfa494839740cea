import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Where the processes that tests start keep what Node compiled for them, most of what a short one does. It goes with
 * the run: programs in temporary folders would fill the folder that `herd` has for it.
 */
export const compiled = join(tmpdir(), `herd-compiled-${process.pid}`);

export function teardown(): void {
  rmSync(compiled, { recursive: true, force: true, maxRetries: 3 });
}
