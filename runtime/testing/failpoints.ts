import { FAILPOINTS, onFailpoint, type Failpoint } from "../store/failpoint.ts";

export { FAILPOINTS };
export type { Failpoint };

/**
 * Ends this process by SIGKILL at the n-th pass of a named point.
 * @param spec `name` or `name:n`, for example `step.before-commit:3`.
 * @throws Error for a name that is not in `FAILPOINTS`.
 */
export function armFailpoint(spec: string): void {
  const [name = "", count = "1"] = spec.split(":");
  if (!(FAILPOINTS as readonly string[]).includes(name)) {
    throw new Error(`HERD_FAILPOINT: there is no point "${name}"; points are ${FAILPOINTS.join(", ")}`);
  }
  let left = Number(count);
  onFailpoint((passed) => {
    if (passed === name && --left === 0) process.kill(process.pid, "SIGKILL");
  });
}

/** Calls back at every pass of every point, for tests that look on. @returns how to stop. */
export function watchFailpoints(listener: (name: Failpoint) => void): () => void {
  onFailpoint(listener);
  return () => onFailpoint(undefined);
}

const armed = process.env["HERD_FAILPOINT"];
if (armed !== undefined && armed !== "") armFailpoint(armed);
