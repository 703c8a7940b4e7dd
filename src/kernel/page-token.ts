// Page tokens (spec section 4, pagination rules): sealed, so that nobody can
// make one or read where another's list stands, and bound to the list they
// continue. They carry a position and no authority.
import { createHash } from "node:crypto";
import { invalidArgument } from "./errors.js";
import { seal, unseal } from "./seal.js";

/** Where a list goes on, and what it was a list of. */
export interface PageCursor {
  /** The sort key and the uid of the last row shown. */
  readonly key: string | number;
  readonly uid: string;
  /** The `skip` of the request that the token answers. */
  readonly skip: number;
}

/** A secret that seals page tokens; `id` names it inside the token. */
export interface PageKey {
  /** 16 hex digits. */
  readonly id: string;
  /** 32 bytes. */
  readonly secret: Buffer;
}

/** The keys in use: the first seals, all open. None is ever thrown away while lists live. */
export type PageKeys = () => readonly PageKey[];

/** After this the list starts again (spec section 4, pagination rule 3): 3 days, in milliseconds. */
export const PAGE_TOKEN_LIFE_MS = 3 * 24 * 60 * 60 * 1000;
/** How far the clock may have gone back since the token was made, in milliseconds. */
const SKEW_MS = 5 * 60 * 1000;
const CONTEXT = "arbor page token 1";
const MAX_LENGTH = 4096;

/** Makes and reads page tokens. */
export interface PageTokens {
  /** The token for the page after `cursor` of the list that `binding` describes. */
  make(cursor: PageCursor, binding: string, nowMs: number): string;
  /**
   * The cursor in `token`; undefined when the token is too old, and the list starts again.
   *
   * @throws ApiError INVALID_ARGUMENT when the token is not one of ours or belongs to another list.
   */
  read(token: string, binding: string, nowMs: number): PageCursor | undefined;
}

type Payload = readonly [binding: string, issuedMs: number, key: string | number, uid: string, skip: number];

/** Creates the maker and reader of page tokens. */
export function createPageTokens(keys: PageKeys): PageTokens {
  return {
    make(cursor, binding, nowMs) {
      const [key] = keys();
      if (key === undefined) throw new TypeError("there is no key for page tokens");
      const payload: Payload = [digestOf(binding), nowMs, cursor.key, cursor.uid, cursor.skip];
      const sealed = seal(key.secret, Buffer.from(JSON.stringify(payload)), CONTEXT);
      return Buffer.concat([Buffer.from(key.id, "hex"), sealed]).toString("base64url");
    },
    read(token, binding, nowMs) {
      const [bound, issuedMs, key, uid, skip] = open(keys(), token);
      if (bound !== digestOf(binding)) throw refused("belongs to a list with other filters or another order");
      if (nowMs - issuedMs > PAGE_TOKEN_LIFE_MS || issuedMs - nowMs > SKEW_MS) return undefined;
      return { key, uid, skip };
    },
  };
}

function open(keys: readonly PageKey[], token: string): Payload {
  if (token.length <= MAX_LENGTH) {
    const bytes = Buffer.from(token, "base64url");
    // Only the one spelling that we made: base64url decoders are lenient.
    if (bytes.toString("base64url") === token) {
      const id = bytes.subarray(0, 8).toString("hex");
      const key = keys.find((k) => k.id === id);
      const plain = key && unseal(key.secret, bytes.subarray(8), CONTEXT);
      if (plain) return JSON.parse(plain.toString()) as Payload;
    }
  }
  throw refused("is not one this service made");
}

function refused(rule: string) {
  return invalidArgument({ field: "pageToken", description: `pageToken ${rule}` });
}

function digestOf(binding: string): string {
  return createHash("sha256").update(binding).digest("base64url").slice(0, 22);
}
