import type { Socket } from "node:net";
import type { z } from "zod";
import { createMessageConnection, type CancellationToken, type MessageConnection } from "vscode-jsonrpc/node";
import type { VisitRequest } from "../asks/visit-shapes.ts";
import type { Door, DoorRequest } from "../doors/shapes.ts";
import type { Assignment } from "../deliveries/assignment.ts";
import type { Receiver } from "../deliveries/desk.ts";
import { messageOf } from "../errors.ts";
import type { HerdEventName, HerdEvents } from "../events.ts";
import { parseRequest } from "../request.ts";
import type { ToolCall } from "../subagent/shapes.ts";
import { checkSize, detached, noHello, otherVersion, tooManyClients, toWire } from "./errors.ts";
import type { ControlHost } from "./host.ts";
import { LineReader, LineWriter } from "./lines.ts";
import { checkGrant, type ControlClient, type Grant } from "./grants.ts";
import { Hello, Says, type DoorWire, type HandleWire, type Hears, type Method, type Said } from "./protocol.ts";
import { PROTOCOL, type Notices } from "./wire.ts";

type Call<M extends Method> = (says: Said<M>, signal: AbortSignal) => Promise<Hears[M]>;

/** How long a client may take to say hello, in milliseconds. */
const HELLO_MS = 10_000;
/** How long the last answers may take to get out, in milliseconds. */
const LAST_WORDS_MS = 1_000;

/** One client of a herd: its calls, the receivers it is, and the events it listens to. All of it ends with it. */
export class Session implements ControlClient {
  readonly #socket: Socket;
  readonly #host: ControlHost;
  readonly #version: string;
  readonly #isFull: boolean;
  readonly #connection: MessageConnection;
  readonly #receivers = new Map<number, () => void>();
  readonly #listeners = new Map<string, () => void>();
  /** Aborts whatever only waits: its answer would reach nobody. What was begun goes on. */
  readonly #gone = new AbortController();
  readonly #deadline: NodeJS.Timeout;
  #greeted = false;
  #grant: Grant = { role: "guest", subject: "" };
  #pid = 0;
  #clientVersion: string | undefined;

  /** @param about.isFull there are as many clients as there may be: this one is told so. */
  constructor(socket: Socket, host: ControlHost, about: { version: string; isFull: boolean }) {
    this.#socket = socket;
    this.#host = host;
    this.#version = about.version;
    this.#isFull = about.isFull;
    this.#connection = createMessageConnection(new LineReader(socket), new LineWriter(socket));
    this.#connection.onRequest("hello", (hello: unknown) => this.#hello(hello));
    for (const method of Object.keys(Says) as Method[]) {
      this.#connection.onRequest(method, (params: unknown, token: CancellationToken) =>
        this.#answer(method, params, token),
      );
    }
    for (const [method, carryOut] of Object.entries(host.access.methods ?? {})) {
      this.#connection.onRequest(method, (params: unknown) => this.#offered(method, carryOut, params));
    }
    // What is no message ends the connection: nobody knows where the next one would begin.
    this.#connection.onError(() => socket.destroy());
    this.#connection.onClose(() => this.#end());
    this.#connection.listen();
    this.#deadline = setTimeout(() => socket.destroy(), HELLO_MS).unref();
  }

  /** Ends it, after what was answered already is out; a client that does not read has a moment for that. */
  close(): void {
    const deadline = setTimeout(() => this.#socket.destroy(), LAST_WORDS_MS);
    this.#socket.once("close", () => clearTimeout(deadline));
    // What it has just sent still comes in, an acknowledgement perhaps; it hangs up when it reads of the end.
    this.#socket.end();
  }

  /** Ends it at once. */
  destroy(): void {
    this.#socket.destroy();
  }

  notify<Name extends keyof Notices>(name: Name, notice: Notices[Name]): void {
    this.tell(name, notice);
  }

  get grant(): Grant {
    return this.#grant;
  }

  get pid(): number {
    return this.#pid;
  }

  get version(): string | undefined {
    return this.#clientVersion;
  }

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  async call(method: string, says: object): Promise<unknown> {
    checkSize(method, says);
    return this.#connection.sendRequest(method, says);
  }

  tell(method: string, says: object): void {
    // A client that is gone hears nothing, and its connection throws at once; its socket says so by itself.
    if (this.#gone.signal.aborted) return;
    void this.#connection.sendNotification(method, says).catch(() => undefined);
  }

  async #hello(said: unknown): Promise<unknown> {
    const hello = Hello.safeParse(said);
    if (!hello.success || hello.data.protocol !== PROTOCOL) {
      const theirs = hello.data?.protocol ?? "unknown";
      // Who lets clients in hears of this one too: an older program may make room for a newer one.
      if (hello.success) this.#admitted(hello.data);
      return this.#refuse("hello", otherVersion(hello.data?.pid, theirs, PROTOCOL));
    }
    if (this.#isFull) return this.#refuse("hello", tooManyClients());
    const isFirst = !this.#greeted;
    if (isFirst) {
      const admitted = this.#admitted(hello.data);
      if ("error" in admitted) return this.#refuse("hello", admitted.error);
      this.#grant = admitted.grant;
      this.#pid = hello.data.pid;
      this.#clientVersion = hello.data.version;
    }
    this.#greeted = true;
    clearTimeout(this.#deadline);
    if (isFirst) this.#host.access.connected?.(this);
    await this.#host.opened;
    const { directory, status } = this.#host;
    return { protocol: PROTOCOL, pid: process.pid, version: this.#version, directory, status };
  }

  /** What the client may do, or why it is not let in. */
  #admitted({ pid, token, version }: z.infer<typeof Hello>) {
    try {
      return { grant: this.#host.access.admit?.(token, { pid, version }) ?? ({ role: "person" } as const) };
    } catch (error) {
      return { error };
    }
  }

  async #answer(method: Method, params: unknown, token: CancellationToken): Promise<unknown> {
    if (!this.#greeted) return this.#refuse(method, noHello(method));
    const cancelled = new AbortController();
    // Cancelled before it was looked at, a token fires no more.
    if (token.isCancellationRequested) cancelled.abort();
    token.onCancellationRequested(() => cancelled.abort());
    try {
      const says = parseRequest(method, Says[method], params);
      checkGrant(this.#grant, method, says);
      const heard = (await (this.#calls[method] as Call<Method>)(says, cancelled.signal)) ?? null;
      checkSize(method, heard);
      return heard;
    } catch (error) {
      return toWire(method, error);
    }
  }

  /** What the herd's program offers beside the methods of every herd. */
  async #offered(method: string, carryOut: (says: unknown, client: ControlClient) => unknown, says: unknown) {
    if (!this.#greeted) return this.#refuse(method, noHello(method));
    try {
      await this.#host.opened;
      const heard = (await carryOut(says ?? {}, this)) ?? null;
      checkSize(method, heard);
      return heard;
    } catch (error) {
      return toWire(method, error);
    }
  }

  /** Says why, then hangs up. */
  #refuse(method: string, error: unknown): unknown {
    setImmediate(() => this.close());
    return toWire(method, error);
  }

  readonly #calls: { [M in Method]: Call<M> } = {
    "owner/subagent": ({ request, call, ...by }, signal) =>
      this.#host.ownerFrom(by).subagent(request, { ...(call as ToolCall), signal }),
    "owner/assign": async ({ request, ...by }, signal) =>
      wireOf(await this.#host.ownerFrom(by).assign({ signal, ...(request as object) } as never)),
    "owner/steer": ({ request, ...by }) => this.#host.ownerFrom(by).steer(request as never),
    "owner/reply": ({ request, ...by }) => this.#host.ownerFrom(by).reply(request as never),
    "owner/close": ({ request, ...by }) => this.#host.ownerFrom(by).close(request as never),
    "owner/list": (by) => this.#host.ownerFrom(by).list(),
    "owner/parked": (by) => this.#host.ownerFrom(by).parked(),
    // As with a visit: a client that is gone waits for nothing.
    "owner/parkedTool": ({ name, input, ...by }, cancelled) =>
      this.#host.parkedToolFrom(by, name, input, AbortSignal.any([cancelled, this.#gone.signal])),
    "owner/attach": async (says) => this.#attach(says),
    "herd/receive": async (says) => this.#receive(says),
    "owner/detach": async ({ receiver }) => this.#detach(receiver),
    "question/reply": ({ askId, cwd, answer, options }) => {
      const grant = this.#grant;
      if (grant.role !== "owner") return this.#host.replyTo(askId, cwd, answer, options);
      // Somebody else's question is one that this owner does not have.
      return this.#host.ownerFrom({ owner: { id: grant.id }, cwd }).reply({ ...options, askId, message: answer });
    },
    "herd/owners": () => this.#host.owners(),
    "herd/parked": ({ subject }) => this.#host.parked(subject),
    "herd/take": ({ subject, id }) => this.#host.take(subject, id),
    // A client that is gone waits for nothing: what its visit came to waits on the subject.
    "herd/visit": ({ cwd, request }, cancelled) =>
      this.#host.visitFrom(cwd, {
        ...(request as VisitRequest),
        signal: AbortSignal.any([cancelled, this.#gone.signal]),
      }),
    "herd/door": async ({ request }) => doorWire(await this.#host.door(request as DoorRequest)),
    "herd/doors": async () => (await this.#host.doors()).map(doorWire),
    "door/visit": async ({ name, request, input, waits }, cancelled) => {
      const door =
        name === undefined ? await this.#host.door(request as DoorRequest) : await this.#host.doorNamed(name);
      const signal = AbortSignal.any([cancelled, this.#gone.signal]);
      return door.visit(input, { signal, ...(waits !== undefined && { waits }) });
    },
    "door/fetch": async ({ name, method, headers, body }) => {
      const hasBody = method !== "GET" && method !== "HEAD";
      const given = { method, headers, ...(hasBody && { body: Buffer.from(body, "base64") }) };
      const answer = await (await this.#host.doorNamed(name)).fetch(new Request("http://localhost/", given));
      return { status: answer.status, headers: [...answer.headers], body: await answer.text() };
    },
    "door/remove": async ({ name }) => {
      await (await this.#host.doorNamed(name)).remove();
      return null;
    },
    "herd/nextDue": async () => (await this.#host.nextDue())?.toISOString() ?? null,
    "herd/run": ({ id }) => this.#host.run(id),
    "herd/runs": () => this.#host.runs(),
    "inbox/list": () => this.#host.inbox.list(),
    "inbox/answer": ({ request }) => this.#host.inbox.answer(request as never),
    "herd/assignment": async ({ requestId }) => wireOf(await this.#host.look(requestId)),
    "herd/tick": async ({ now }) => {
      await this.#host.tick(now === undefined ? undefined : new Date(now));
      return null;
    },
    "herd/backup": ({ directory }) => this.#host.backup(directory),
    "herd/listen": async ({ event }) => this.#listen(event as HerdEventName),
    "herd/unlisten": async ({ event }) => this.#unlisten(event),
    "assignment/status": async ({ requestId }) => (await this.#host.look(requestId)).status(),
    "assignment/next": async ({ requestId, seen }, cancelled) => {
      const handle = await this.#host.look(requestId);
      const signal = AbortSignal.any([cancelled, this.#gone.signal]);
      for (;;) {
        const event = await handle.next({ signal });
        if (event.type === "result" || !seen.includes(event.question.askId)) return event;
      }
    },
    "assignment/result": async ({ requestId }, cancelled) => {
      const handle = await this.#host.look(requestId);
      return handle.result({ signal: AbortSignal.any([cancelled, this.#gone.signal]) });
    },
    "assignment/returned": async ({ requestId, deliveryId }) => {
      await this.#host.returned(requestId, deliveryId);
      return null;
    },
  };

  #attach({ receiver, hearsQuestions, hearsResults, replace, ...by }: Said<"owner/attach">): null {
    // One that is replaced may hang: what it has goes to the one that replaced it.
    const { promise: replaced, reject } = Promise.withResolvers<never>();
    replaced.catch(() => undefined);
    const handlers = this.#handlers(receiver, { hearsQuestions, hearsResults }, replaced);
    const how = { replace, replaced: () => reject(detached()) };
    this.#receivers.set(receiver, this.#host.attachFrom(by, handlers, how));
    return null;
  }

  #receive({ receiver, scope, ...hears }: Said<"herd/receive">): null {
    this.#receivers.set(receiver, this.#host.receive({ scope }, this.#handlers(receiver, hears)));
    return null;
  }

  /** A receiver whose handlers are at the client. @param over rejects when it is not to be waited for any more. */
  #handlers(
    receiver: number,
    { hearsQuestions, hearsResults }: { hearsQuestions: boolean; hearsResults: boolean },
    over?: Promise<never>,
  ): Receiver {
    const call = async (method: string, params: object) => {
      checkSize(method, params);
      await Promise.race([this.#connection.sendRequest(method, params), ...(over ? [over] : [])]);
    };
    return {
      ...(hearsQuestions && { onQuestion: (question) => call("receiver/question", { receiver, question }) }),
      ...(hearsResults && { onResult: (result) => call("receiver/result", { receiver, result }) }),
    };
  }

  #detach(receiver: number): null {
    this.#receivers.get(receiver)?.();
    this.#receivers.delete(receiver);
    return null;
  }

  #listen(event: HerdEventName): null {
    if (this.#listeners.has(event)) return null;
    this.#listeners.set(
      event,
      this.#host.on(event, (value) => this.#tell(event, value)),
    );
    return null;
  }

  #unlisten(event: string): null {
    this.#listeners.get(event)?.();
    this.#listeners.delete(event);
    return null;
  }

  #tell<Name extends HerdEventName>(event: Name, value: HerdEvents[Name]): void {
    // An error says nothing as JSON.
    const told = "error" in value && value.error instanceof Error ? { ...value, error: messageOf(value.error) } : value;
    checkSize(event, told);
    this.notify("event", { event, value: told });
  }

  #end(): void {
    clearTimeout(this.#deadline);
    this.#gone.abort();
    for (const stop of [...this.#receivers.values(), ...this.#listeners.values()]) stop();
    this.#receivers.clear();
    this.#listeners.clear();
    this.#connection.dispose();
  }
}

function doorWire({ name, kind, url }: Door): DoorWire {
  return { ...(name !== undefined && { name }), kind, ...(url !== undefined && { url }) };
}

function wireOf({ requestId, label, sessionId }: Assignment): HandleWire {
  return { requestId, label, sessionId };
}
