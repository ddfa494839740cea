import type { Command } from "commander";
import { connectHost } from "../../host/start.ts";
import { show, withHostDirectory } from "../output.ts";

/** `herd stop`: ends the background process of Pi sessions. Nothing is lost by it. */
export function addStop(program: Command, version: string): void {
  withHostDirectory(
    program
      .command("stop")
      .description("end the background process of Pi sessions; questions, results and workers' sessions stay"),
  )
    .option("--json", "print JSON for programs")
    .action(async (options: { directory: string; json?: boolean }) => {
      const connection = await connectHost({ directory: options.directory, bearer: { role: "person" }, version });
      if (connection === undefined) {
        const value = { stopped: false, directory: options.directory };
        return show(options, value, () => `No background process runs for ${options.directory}.`);
      }
      const { pid } = await connection.request<{ pid: number }>("host/stop", {});
      await connection.ended;
      await show(
        options,
        { stopped: true, pid, directory: options.directory },
        () => `Process ${pid} has ended. Workers go on from their sessions when a Pi session needs them again.`,
      );
    });
}
