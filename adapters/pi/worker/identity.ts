import { ENV } from "../environment.ts";

/** What a worker's process knows of itself. */
export interface WorkerIdentity {
  directory: string;
  token: string;
  session: string;
  delegates: boolean;
}

/** Which worker this process is, by what its host told it; undefined in every other Pi. */
export function workerIdentity(env: NodeJS.ProcessEnv): WorkerIdentity | undefined {
  const { [ENV.directory]: directory, [ENV.token]: token, [ENV.session]: session } = env;
  if (directory === undefined || token === undefined || session === undefined) return undefined;
  return { directory, token, session, delegates: env[ENV.delegates] === "1" };
}
