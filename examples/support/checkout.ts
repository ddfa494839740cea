/**
 * `node --import ./examples/support/checkout.ts …`: in this repository `pi-herd` is its source, which needs no build.
 */
import { registerHooks } from "node:module";

const source: Record<string, string> = {
  "pi-herd": new URL("../../runtime/index.ts", import.meta.url).href,
  "pi-herd/testing": new URL("../../runtime/testing/index.ts", import.meta.url).href,
};

registerHooks({ resolve: (specifier, context, next) => next(source[specifier] ?? specifier, context) });
