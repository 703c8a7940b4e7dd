// The kinds of input, by the names that the command line takes. Bodies and queries of REST are spoilt in test/contract/fuzz.ts.
import type { Kind } from "./campaign.js";
import { envelopeKind } from "./envelope-kind.js";
import { http1Kind } from "./http1-kind.js";
import { http2Kind } from "./http2-kind.js";
import type { Target } from "./target.js";

/** Makes a kind of input for a process, of which some read what it serves. */
export type CreateKind = (target: Target) => Promise<Kind> | Kind;

/** The kinds. */
export const kinds: Readonly<Record<string, CreateKind>> = {
  http1: () => http1Kind,
  http2: () => http2Kind,
  envelopes: () => envelopeKind,
};
