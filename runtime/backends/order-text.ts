import type { Order } from "../backend.ts";
import { envelope } from "../evidence/evidence.ts";

/** What the model of a worker reads of an order; nothing for one that only ends it. */
export function orderText(order: Order): string {
  switch (order.kind) {
    case "start":
    case "task":
      return envelope("Task", order.task, order.files);
    case "answer":
      return `Your owner answers your question. Go on with the same task.\n\n${envelope("Reply", order.message, order.files)}`;
    case "steer":
      return `Your owner says, about the task you are at:\n\n${envelope("Steer", order.message, order.files)}`;
    case "resume":
      return (
        "Your process ended and was started again. Look at what is done already, then go on with the same task. " +
        "What was under way when it ended may or may not have been carried out."
      );
    case "deliver":
      return order.text;
    case "stop":
      return "";
  }
}
