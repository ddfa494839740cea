import { writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  createHerd,
  HerdError,
  type ControlClient,
  type DefinitionSource,
  type Grant,
  type Herd,
} from "../../runtime/index.ts";
import { messageOf } from "../../runtime/client.ts";
import { headless, type Headless } from "../pi/headless/headless.ts";
import { Dialogs, type DialogAnswer } from "./dialogs.ts";
import type { Log } from "./log.ts";
import { findPi } from "./pi-command.ts";
import { agentDirectory } from "./place.ts";
import {
  DialogAnswerSays,
  parsed,
  RootHere,
  WorkerAsk,
  WorkerHello,
  WorkerReport,
  WorkerSubagent,
} from "./requests.ts";
import { Roots } from "./roots.ts";
import type {
  ClosedWorker,
  Dialog,
  HostStatus,
  InUse,
  RootHears,
  RootSays,
  WorkerAsks,
  WorkerDelegates,
  WorkerSays,
  WorkerTells,
} from "./shapes.ts";
import { Silences } from "./silences.ts";
import { connectHost } from "./start.ts";
import { bearerOf, readKey, tokenFor } from "./tokens.ts";
import { isNewer } from "./versions.ts";

/** How often it is looked whether anybody needs the host, in milliseconds. */
const LOOK_MS = 250;
/** How long nobody may need it before it leaves. */
const LEAVE_MS = 30_000;
/** How long after its start it waits for sessions before it starts their workers again without them. */
const SESSIONS_MS = 8_000;
/** How long the last host of the folder may take to make room. */
const ROOM_MS = 12_000;

export interface HostOptions {
  /** The folder of the herd. */
  directory: string;
  /** The version of this package. */
  version: string;
  /** Our extension as Pi loads it, absolute. */
  extension: string;
  log: Log;
  /** How long nobody may need it before it leaves, in milliseconds. */
  leaveAfterMs?: number;
}

/**
 * The background process of one agent directory: it has the store open, runs the workers of all Pi sessions, and lets
 * clients in through the control socket. It leaves by itself when nobody needs it.
 */
export class Host {
  readonly #options: HostOptions;
  readonly #clients = new Set<ControlClient>();
  readonly #roots = new Roots();
  readonly #dialogs: Dialogs;
  readonly #since = new Date().toISOString();
  /** Resolves when it is time to leave, with why. */
  readonly #over = Promise.withResolvers<string>();
  #herd: Herd | undefined;
  #workers: Headless | undefined;
  #silences: Silences | undefined;
  #idleSince: number | undefined;
  #newerVersion: string | undefined;

  private constructor(options: HostOptions) {
    this.#options = options;
    const audience = {
      opened: (owner: string, dialog: Dialog) => this.#tellAll(owner, "dialog/opened", dialog),
      closed: (owner: string, id: string) => this.#tellAll(owner, "dialog/closed", { id }),
    };
    this.#dialogs = new Dialogs(audience, resolve(options.directory));
  }

  /**
   * Opens the herd of the folder and serves it until it is time to leave.
   * @param ready called once it answers.
   * @returns why it left; undefined when another host serves the folder already.
   * @throws HerdError `store_locked` when another process has the store, and what else speaks against opening it.
   */
  static async serve(options: HostOptions, ready: (host: Host) => void): Promise<string | undefined> {
    const host = new Host(options);
    if (!(await host.#openUnlessServed())) return undefined;
    ready(host);
    const looks = setInterval(() => void host.#look().catch((error) => host.stop(messageOf(error))), LOOK_MS);
    try {
      return await host.#over.promise;
    } finally {
      clearInterval(looks);
      host.#silences?.close();
      await host.#herd?.close();
    }
  }

  /** Asks it to leave. */
  stop(why: string): void {
    this.#over.resolve(why);
  }

  /** One that has the folder serves it, or is just leaving. @returns whether it is open here. */
  async #openUnlessServed(): Promise<boolean> {
    const { directory, version } = this.#options;
    for (const until = Date.now() + ROOM_MS; ;) {
      try {
        await this.#open();
        return true;
      } catch (error) {
        if (!(error instanceof HerdError) || error.reason !== "store_locked") throw error;
        const served = await connectHost({ directory, bearer: { role: "observer" }, version });
        await served?.close(LOOK_MS);
        if (served !== undefined) return false;
        if (Date.now() >= until) throw error;
      }
    }
  }

  async #open(): Promise<void> {
    const { log, extension } = this.#options;
    const directory = resolve(this.#options.directory);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const key = await readKey(directory);
    const agents = agentDirectory();
    const { factory, backend } = headless({
      directory,
      agentDirectory: agents,
      key,
      extension,
      rootOf: (owner) => this.#roots.of(owner),
      lastSaid: (owner) => this.#roots.lastSaid(owner),
      mayCome: (owner, signal) => {
        const ms = Date.parse(this.#since) + SESSIONS_MS - Date.now();
        return this.#roots.known(owner, { ms, signal });
      },
      findPi: async () => this.#roots.anyPi() ?? (await findPi()),
      dialogs: this.#dialogs,
      log,
    });
    this.#herd = await createHerd({
      directory,
      backends: [factory],
      definitions: () => [join(agents, "agents"), ...projectsOf(this.#roots.all())],
      waitForLockMs: LOOK_MS,
      control: {
        token: tokenFor(key, { role: "person" }),
        admit: (token, { version }) => {
          const bearer = bearerOf(key, token);
          // Also a worker's: what comes after an update starts with the newer version.
          if (bearer.role === "root" || bearer.role === "person") this.#noteVersion(version);
          return grantOf(bearer);
        },
        connected: (client) => this.#welcome(client),
        methods: this.#methods(),
      },
    });
    const workers = backend();
    this.#workers = workers;
    const owners = {
      root: (session: string) => this.#roots.clientOf(session),
      parent: (runId: string) => workers.clientOf(runId),
    };
    this.#herd.on("result", ({ status, owner, requestId, label, agent }) => {
      if (status !== "closed" || owner.scope !== undefined) return;
      this.#roots.clientOf(owner.id)?.tell("worker/closed", { requestId, label, agent } satisfies ClosedWorker);
    });
    this.#silences = new Silences(this.#herd, owners, log);
    // Also where no worker needs it.
    await this.#workers.sweep();
  }

  #methods(): Record<string, (says: unknown, client: ControlClient) => unknown> {
    return {
      "host/status": (_, client) => this.#status(client.grant),
      "host/stop": (_, client) => {
        only(client, "person");
        this.#options.log.info({ by: client.pid }, "asked to stop");
        setImmediate(() => this.stop("stopped by its user"));
        return { pid: process.pid };
      },
      "root/here": async (says, client) => this.#root(says, client),
      "dialog/answer": (says, client) => {
        const { grant } = client;
        if (grant.role !== "owner") only(client, "person");
        const { dialog, answer } = parsed<{ dialog: string; answer: string | DialogAnswer }>(
          "answer",
          DialogAnswerSays,
          says,
        );
        const answered = this.#dialogs.answer(dialog, answer, grant.role === "owner" ? grant.id : undefined);
        this.#options.log.info({ dialog: answered.id, runId: answered.runId }, "dialog answered");
        return { label: answered.label, dialog: answered.id };
      },
      "worker/hello": async (says, client) => {
        const worker = workerOf(client);
        const hello = parsed<WorkerSays>("worker/hello", WorkerHello, says);
        await this.#backend.hello(client, worker, hello);
        const label = this.#backend.workerIn(hello.sessionId) ?? "";
        // A person has opened it by hand.
        this.#roots.clientOf(hello.sessionId)?.tell("session/inUse", { label } satisfies InUse);
      },
      "worker/report": (says, client) => {
        const { runId } = workerOf(client);
        const { told, ...about } = parsed<WorkerTells>("worker/report", WorkerReport, says);
        return this.#backend.report(client, runId, told, about);
      },
      "worker/ask": (says, client) => {
        const { runId } = workerOf(client);
        return this.#backend.ask(client, runId, parsed<WorkerAsks>("worker/ask", WorkerAsk, says));
      },
      "worker/subagent": (says, client) => {
        const { runId } = workerOf(client);
        return this.#backend.subagent(client, runId, parsed<WorkerDelegates>("worker/subagent", WorkerSubagent, says));
      },
    };
  }

  get #backend(): Headless {
    return this.#workers as Headless;
  }

  #welcome(client: ControlClient): void {
    this.#clients.add(client);
    client.gone.addEventListener("abort", () => {
      this.#clients.delete(client);
      this.#roots.left(client);
    });
  }

  /** Tells every Pi that has a session open: a dialog that one of them answers is taken away in the others. */
  #tellAll(session: string, method: string, says: object): void {
    for (const client of this.#roots.clientsOf(session)) client.tell(method, says);
  }

  /** A root session says where it is; what waits for a person there is shown to it. */
  async #root(says: unknown, client: ControlClient): Promise<RootHears> {
    const { id } = only(client, "owner");
    const here = parsed<RootSays>("root/here", RootHere, says);
    const isNew = this.#roots.here(id, here, client);
    this.#backend.came(id);
    if (isNew) {
      // After the answer, with which the session begins to listen.
      setImmediate(() => {
        for (const dialog of this.#dialogs.list(id)) client.tell("dialog/opened", dialog);
      });
    }
    const herd = this.#herd as Herd;
    const worker = isNew ? this.#backend.workerIn(id) : undefined;
    return {
      ...(worker !== undefined && { worker }),
      pid: process.pid,
      version: this.#options.version,
      elsewhere: isNew ? await this.#roots.elsewhere(herd, { id, cwd: here.cwd, pid: client.pid }) : [],
      isNews: isNew && here.hasUI && this.#tellOnce(),
    };
  }

  /** Whether somebody is to be told of the background process: once for ever. */
  #tellOnce(): boolean {
    try {
      writeFileSync(join(this.#options.directory, "told"), "", { mode: 0o600, flag: "wx" });
      return true;
    } catch (error) {
      // Where it cannot be noted, it would be told every time.
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "EEXIST") this.#options.log.warn({ code }, "cannot note who was told of this process");
      return false;
    }
  }

  /** What a client may know: a person and an observer all of it, a session its own, a worker no dialogs. */
  #status(grant: Grant): HostStatus {
    const { version, directory } = this.#options;
    const seesAll = grant.role === "person" || grant.role === "observer";
    return {
      pid: process.pid,
      version,
      directory: resolve(directory),
      since: this.#since,
      clients: this.#clients.size,
      roots: this.#roots.size,
      workers: this.#backend.alive,
      dialogs: seesAll ? this.#dialogs.list() : grant.role === "owner" ? this.#dialogs.list(grant.id) : [],
      replacing: this.#newerVersion !== undefined,
    };
  }

  #noteVersion(version: string | undefined): void {
    const { log, version: ours } = this.#options;
    if (this.#newerVersion !== undefined || !isNewer(version, ours)) return;
    this.#newerVersion = version;
    log.info({ ours, theirs: version }, "a newer version came; leaves as soon as no turn runs");
  }

  /** Leaves for a newer version between two turns, and when nobody has needed it for a while. */
  async #look(): Promise<void> {
    const { busy, alive } = this.#backend;
    this.#silences?.look(Date.now());
    // What cannot be written any more can be once the store is opened again: the next one does that.
    if (this.#herd?.status === "fenced") return this.stop("the store takes no more writes");
    if (this.#newerVersion !== undefined && busy === 0) return this.stop(`version ${this.#newerVersion} takes over`);
    const others = [...this.#clients].filter(({ grant }) => grant.role !== "guest").length;
    if (others > 0 || alive > 0) {
      this.#idleSince = undefined;
      return;
    }
    const now = Date.now();
    this.#idleSince ??= now;
    if (now - this.#idleSince < (this.#options.leaveAfterMs ?? LEAVE_MS)) return;
    if ((await (this.#herd as Herd).nextDue()) !== undefined) this.#idleSince = now;
    else this.stop("nobody needs it");
  }
}

/** The definitions of the projects in which sessions are open. */
function projectsOf(roots: readonly RootSays[]): DefinitionSource[] {
  const byFolder = new Map(roots.map((root) => [root.cwd, root]));
  return [...byFolder.values()].map(({ cwd, trusted }) => ({
    path: join(cwd, ".pi", "agents"),
    layer: "project",
    cwd,
    trusted,
  }));
}

function grantOf(bearer: ReturnType<typeof bearerOf>): Grant {
  switch (bearer.role) {
    case "person":
    case "observer":
      return { role: bearer.role };
    case "root":
      return { role: "owner", id: bearer.session };
    case "worker":
      return { role: "guest", subject: JSON.stringify({ runId: bearer.runId, launch: bearer.launch }) };
  }
}

/** Which worker a client is. @throws HerdError `not_granted`. */
function workerOf(client: ControlClient): { runId: string; launch: string } {
  return JSON.parse(only(client, "guest").subject) as { runId: string; launch: string };
}

/** @throws HerdError `not_granted` when the client is something else. */
function only<Role extends Grant["role"]>(client: ControlClient, role: Role): Extract<Grant, { role: Role }> {
  if (client.grant.role === role) return client.grant as Extract<Grant, { role: Role }>;
  throw notGranted(role, client.grant.role);
}

function notGranted(needs: string, has: string): HerdError {
  return new HerdError({
    category: "invalid_request",
    reason: "not_granted",
    message: `This call is for the role ${needs}, and the client has the role ${has}`,
    nextAction: "use the herd command, or the Pi extension",
  });
}
