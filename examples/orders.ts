import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createHerd, type AgentDefinition, type DoorRequest } from "pi-herd";

/** What a shop needs besides. */
export interface ShopOptions {
  /** The herd's folder. */
  directory: string;
  /** What the payment service signs its deliveries with. */
  secret: string;
  /** The ports of the two webhooks; 0 is any free one. */
  ports?: { orders: number; approvals: number };
  /** The file that refunds are booked in. */
  ledger: string;
  tickMs?: number;
}

/** Every order is a subject; `desk` is what the nightly run shares with all of them. */
const order = '{ scope: "shop", keys: { order: .order, desk: "refunds" } }';

const refund: AgentDefinition = {
  description: "Refunds an order, with somebody's approval",
  input: {
    type: "object",
    properties: { order: { type: "string" }, amount: { type: "number" } },
    required: ["order", "amount"],
  },
  run: async (_task, worker) => {
    const { order: number, amount } = worker.input as { order: string; amount: number };
    const approved = await worker.ask({
      question: `Refund ${amount} EUR of order ${number}?`,
      answerFormat: "confirm",
      payload: { order: number, amount },
    });
    return { order: number, amount: approved ? amount : 0 };
  },
};

/** Two webhooks and a schedule are the owners of these runs; nobody waits for them in this process. */
export async function openShop({ directory, secret, ports, ledger, tickMs }: ShopOptions) {
  const bookkeeper: AgentDefinition = {
    description: "Takes what refunds came to, and books it",
    run: async (_task, worker) => {
      let booked = 0;
      for (const { id, label, status } of await worker.parkedTool("list_parked", {})) {
        if (label !== "refund" || status !== "finished") continue;
        const { result } = await worker.parkedTool("resume_parked", { interaction_id: id });
        await worker.step(`book ${id}`, () => book(ledger, `${id} ${result.order} ${result.amount}\n`));
        booked++;
      }
      return `${booked} booked`;
    },
  };
  const herd = await createHerd({
    directory,
    agents: { refund, bookkeeper },
    ...(tickMs !== undefined && { tickMs }),
  });

  // 1. A delivery starts a run, which asks and parks.
  const orders: DoorRequest<"refund"> = { name: "orders", kind: "webhook", secret, subject: order, target: "refund" };
  // 2. Another one answers the question of its order, by jq, and never starts anything.
  const approvals: DoorRequest<"refund"> = {
    name: "approvals",
    kind: "webhook",
    secret,
    subject: order,
    target: "refund",
    contract: {
      resumeExpr: `
        . as $given
        | [$parked[] | select(.status == "asking" and .payload.order == $given.order)]
        | if . == [] then null else { id: .[0].id, payload: $given.approved } end
      `,
      startExpr: "null",
    },
  };
  // 3. At night what they came to is taken. The run of the night before is cleared away first.
  const nightly: DoorRequest<"bookkeeper"> = {
    name: "nightly",
    kind: "schedule",
    cron: "0 2 * * *",
    timezone: "Europe/Madrid",
    subject: { scope: "shop", keys: { desk: "refunds" } },
    target: { agent: "bookkeeper", task: "Book the day's refunds" },
    contract: { cancelExpr: '[$parked[] | select(.label == "bookkeeper" and .status == "finished") | .id]' },
  };
  return {
    herd,
    orders: await herd.door({ ...orders, ...(ports && { port: ports.orders }) }),
    approvals: await herd.door({ ...approvals, ...(ports && { port: ports.approvals }) }),
    nightly: await herd.door(nightly),
  };
}

/** A step may run twice when the process dies in it, so a line that is there already is not written again. */
function book(ledger: string, line: string): void {
  const booked = existsSync(ledger) ? readFileSync(ledger, "utf8") : "";
  if (!booked.includes(line)) appendFileSync(ledger, line);
}

if (process.argv[1] === import.meta.filename) {
  const { WEBHOOK_SECRET: secret = "a secret of at least 16 bytes" } = process.env;
  const ports = { orders: 4801, approvals: 4802 };
  const shop = await openShop({ directory: ".herd", secret, ports, ledger: "refunds.txt" });
  console.log(`orders at ${shop.orders.url}, approvals at ${shop.approvals.url}`);
}
