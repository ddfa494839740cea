/** The suites that a store or a backend of your own must pass. They run under vitest. */
export { storeContract } from "./store/contract.ts";
export type { StoreUnderTest } from "./store/contract.ts";
export { backendContract } from "./backend.contract.ts";
export type { BackendUnderTest } from "./backend.contract.ts";
