/**
 * The thread in which jq runs. It is started by `jq-thread.ts` and does one job at a time: jq cannot be interrupted
 * from inside, so whoever limits its time has to be in another thread.
 */
import { readFile } from "node:fs/promises";
import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import type { Jq } from "jq-wasm";
import { messageOf } from "../errors.ts";
import { NON_FINITE, type JqAnswer, type JqEnding, type JqJob, type JqStarted, type JqThreadData } from "./jq-job.ts";

/** jq's stack, in bytes. It grows down, and right below lies jq's own data, which nothing protects from it. */
const STACK_BYTES = 1 << 20;
/** The end of the stack that no evaluation may come to, in bytes. */
const RED_ZONE_BYTES = 1 << 16;
/** Memory that was taken once is never given back; a thread that holds more than this is replaced. In bytes. */
const MAX_KEPT_BYTES = 64 << 20;

/** What programs may not do: look at the process, read what is not theirs, write, or end without a word. */
const SEALED = [
  ...["env", "input", "inputs", "debug", "debug(m)", "stderr", "halt", "halt_error", "halt_error(c)"],
  ...["input_filename", "get_search_list", "modulemeta"],
].map((name) => `def ${name}: error("${name.replace(/\(.*/, "")} is not available here");`);

/** The parts of WebAssembly that are used here; the types of Node have none of it. */
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>;
  Instance: new (module: object, imports: object) => { exports: object };
};

/** What version 3.0.0 of the package calls the memory, and the function that says where the stack is. */
interface Exports {
  F: { readonly buffer: ArrayBuffer };
  L(): number;
}

interface Loaded {
  jq: Jq;
  /** How many bytes it has taken. */
  bytes(): number;
  /** Whether anything ever came close to the end of the stack. */
  overflowed(): boolean;
}

// Nobody imports this file, so there is a parent.
await serve(parentPort as MessagePort, workerData as JqThreadData);

async function serve(port: MessagePort, data: JqThreadData): Promise<void> {
  const file = new URL(import.meta.resolve("jq-wasm/jq.wasm"));
  const module = (data.module as object | undefined) ?? (await WebAssembly.compile(await readFile(file)));
  const loaded = await load(module);
  port.on("message", (job: JqJob) => port.postMessage(perform(loaded, job)));
  port.postMessage({ kind: "started", module } satisfies JqStarted);
}

async function load(module: object): Promise<Loaded> {
  const { loadJq } = await import("jq-wasm");
  const instantiated = Promise.withResolvers<Exports>();
  const jq = await loadJq({
    instantiateWasm(imports, onSuccess) {
      const instance = new WebAssembly.Instance(module, imports);
      instantiated.resolve(instance.exports as Exports);
      onSuccess(instance, module);
    },
  });
  const { F: memory, L: stackPointer } = await instantiated.promise;
  const redZone = stackPointer() - STACK_BYTES;
  const untouched = Buffer.alloc(RED_ZONE_BYTES);
  return {
    jq,
    bytes: () => memory.buffer.byteLength,
    overflowed: () => !untouched.equals(new Uint8Array(memory.buffer, redZone, RED_ZONE_BYTES)),
  };
}

function perform({ jq, bytes, overflowed }: Loaded, job: JqJob): JqAnswer {
  let ending: JqEnding;
  try {
    ending = run(jq, job);
  } catch (error) {
    ending = { kind: "broken", why: messageOf(error) };
  }
  // Behind the end of the stack it overwrites its own data, and its answer may be anything.
  if (ending.kind !== "broken" && overflowed()) ending = { kind: "broken", why: "its stack overflowed" };
  return { ...ending, spent: ending.kind === "broken" || bytes() > MAX_KEPT_BYTES };
}

function run(jq: Jq, { program, variables, compile, document }: JqJob): JqEnding {
  const whole = sealed(program, variables);
  if (compile) {
    // The program alone: inside of the whole, `1) | (2` would be as good as any. Without input nothing is run.
    const declared = variables.flatMap((name) => ["--argjson", name, "null"]);
    const alone = call(jq, "", program, declared);
    if (alone.exitCode !== 0) return { kind: "uncompiled", stderr: alone.stderr };
    // What is a program alone and no expression inside of another begins with a directive.
    if (call(jq, "", whole, []).exitCode !== 0) return { kind: "uncompiled", stderr: "it is a module" };
  }
  if (document === undefined) return { kind: "compiled" };
  const { exitCode, stdout, stderr } = call(jq, document, whole, []);
  return exitCode === 0 ? { kind: "ran", outputs: stdout } : { kind: "failed", stderr };
}

/** Programs may begin with a minus, so the options end before them. */
function call(jq: Jq, input: string, program: string, options: readonly string[]) {
  return jq.raw(input, program, ["-c", ...options, "--"]);
}

/**
 * The program with its variables and without what is sealed, as one that yields one value: a list of the first two
 * outputs. Two suffice to tell that there are too many, also of a program that never ends.
 */
function sealed(program: string, variables: readonly string[]): string {
  const bindings = ["{} as $ENV", "{} as $ARGS", ...variables.map((name) => `.[1].${name} as $${name}`), ".[0]"];
  // Two line ends, because a comment goes on over the first one if it ends with a backslash.
  return (
    `${SEALED.join(" ")} ${bindings.join(" | ")} | [limit(2; (${program}\n\n))]` +
    ` | if any(.. | numbers; isinfinite or isnan) then "${NON_FINITE}" else . end`
  );
}
