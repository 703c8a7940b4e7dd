// What the parent and its workers tell each other.
import type { SettingTexts } from "../../config/config.js";
import type { ListenAddress } from "../../kernel/ip-address.js";
import type { FamilySamples } from "../../telemetry/metrics/samples.js";

/** The first argument of a worker. It is no command, because a worker needs its parent. */
export const WORKER_ARGUMENT = "serve-worker";

/** Failed attempts that a worker counted and the others count too: the kinds and names of their counters. */
export interface Failures {
  readonly kind: "failures";
  readonly failures: readonly (readonly [kind: string, name: string])[];
}

/** What a worker is told. */
export type ToWorker =
  | {
      readonly kind: "start";
      readonly worker: number;
      readonly settings: SettingTexts;
      readonly address: ListenAddress;
    }
  /** Comes with a socket. `isOverLimit`: its address has as many connections as it may have. */
  | { readonly kind: "connection"; readonly id: number; readonly isOverLimit: boolean }
  /** Asks for "taken", because the message with a connection may have been lost. */
  | { readonly kind: "ask-taken"; readonly id: number }
  | { readonly kind: "collect"; readonly id: number }
  /** Asks for "alive". */
  | { readonly kind: "ping" }
  | Failures
  | { readonly kind: "reload" }
  /** Balancers are to use another server; all calls are still served. */
  | { readonly kind: "leave" }
  /** No connection follows. */
  | { readonly kind: "stop"; readonly reason: string }
  | { readonly kind: "abandon"; readonly drainMs: number };

/** What a worker tells. */
export type FromWorker =
  /** The start goes on, although it takes long. */
  | { readonly kind: "progress" }
  | { readonly kind: "ready" }
  /** The start has failed, and the process ends. */
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "alive" }
  /** The worker can take another connection. `hasIt`: it has this one. */
  | { readonly kind: "taken"; readonly id: number; readonly hasIt: boolean }
  | { readonly kind: "closed"; readonly ids: readonly number[] }
  | Failures
  | { readonly kind: "collected"; readonly id: number; readonly families: readonly FamilySamples[] };
