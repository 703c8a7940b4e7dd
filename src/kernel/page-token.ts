// Page tokens (docs/api-rules.md#page-tokens). They are encrypted and authenticated, so that callers can neither
// create nor read them, and bound to their list. They contain a position and grant no access.
import { sha256 } from "./digest.js";
import { invalidArgument } from "./errors.js";
import { seal, unseal } from "./seal.js";

/** The position after a page of a list. */
export interface PageCursor {
  /** The sort key and the uid of the last row of the page. */
  readonly key: string | number;
  readonly uid: string;
  /** The `skip` of the request whose response had the token. */
  readonly skip: number;
}

/** A secret that encrypts page tokens; `id` identifies it in the token. */
export interface PageKey {
  /** 16 hex digits. */
  readonly id: string;
  /** 32 bytes. */
  readonly secret: Buffer;
}

/** The keys: the first one encrypts, all decrypt. A key is kept as long as its tokens are valid. */
export type PageKeys = () => readonly PageKey[];

/** The life of a page token, after which the list starts again: 3 days, in milliseconds. */
export const PAGE_TOKEN_LIFE_MS = 3 * 24 * 60 * 60 * 1000;
/** How far the clock may have been set back since the token was created, in milliseconds. */
const SKEW_MS = 5 * 60 * 1000;
const CONTEXT = "arbor page token 1";
const MAX_LENGTH = 4096;

type Payload = readonly [binding: string, issuedMs: number, key: string | number, uid: string, skip: number];

export type PageTokens<Tx> = ReturnType<typeof createPageTokens<Tx>>;

/**
 * Creates and reads page tokens.
 *
 * @param keys the keys in memory
 * @param readKeys reads the keys in the transaction of a call, for a token whose key is not in memory: another process may
 * have created it
 */
export function createPageTokens<Tx>(
  keys: PageKeys,
  readKeys: (tx: Tx) => Promise<readonly PageKey[]> = async () => keys(),
) {
  return {
    /** Creates the token for the page after `cursor` of the list that `binding` describes. */
    create(cursor: PageCursor, binding: string, nowMs: number): string {
      const [key] = keys();
      if (key === undefined) throw new TypeError("there is no key for page tokens");
      const payload: Payload = [digestOf(binding), nowMs, cursor.key, cursor.uid, cursor.skip];
      const sealed = seal(key.secret, Buffer.from(JSON.stringify(payload)), CONTEXT);
      return Buffer.concat([Buffer.from(key.id, "hex"), sealed]).toString("base64url");
    },
    /**
     * Reads the cursor in `token`; undefined when the token has expired, and the list starts again.
     *
     * @throws ApiError INVALID_ARGUMENT when this service did not create the token, or it belongs to another list
     */
    async read(tx: Tx, token: string, binding: string, nowMs: number): Promise<PageCursor | undefined> {
      const [bound, issuedMs, key, uid, skip] = await unsealToken(keys(), () => readKeys(tx), token);
      if (bound !== digestOf(binding)) throw invalidPageToken("belongs to a list with other filters or another order");
      if (nowMs - issuedMs > PAGE_TOKEN_LIFE_MS || issuedMs - nowMs > SKEW_MS) return undefined;
      return { key, uid, skip };
    },
  };
}

async function unsealToken(
  keys: readonly PageKey[],
  readKeys: () => Promise<readonly PageKey[]>,
  token: string,
): Promise<Payload> {
  if (token.length <= MAX_LENGTH) {
    const bytes = Buffer.from(token, "base64url");
    // Only the canonical spelling: base64url decoders are lenient.
    if (bytes.toString("base64url") === token) {
      const id = bytes.subarray(0, 8).toString("hex");
      const isKey = (key: PageKey) => key.id === id;
      const key = keys.find(isKey) ?? (await readKeys()).find(isKey);
      const plain = key && unseal(key.secret, bytes.subarray(8), CONTEXT);
      if (plain) return JSON.parse(plain.toString()) as Payload;
    }
  }
  throw invalidPageToken("is not one this service made");
}

function invalidPageToken(rule: string) {
  return invalidArgument({ field: "pageToken", rule: `${rule}` });
}

function digestOf(binding: string): string {
  return sha256(binding).toString("base64url").slice(0, 22);
}
