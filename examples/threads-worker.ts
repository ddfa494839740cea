import { parentPort } from "node:worker_threads";
import type { Said, Told } from "./threads.ts";

/** The code of one thread: asks how, and does it. */
parentPort?.on("message", ({ type, text }: Told) => {
  if (type === "task") say({ type: "ask", question: `How do I do this: ${text}?` });
  if (type === "answer") say({ type: "done", text: `Done ${text}.` });
});

function say(said: Said): void {
  parentPort?.postMessage(said);
}
