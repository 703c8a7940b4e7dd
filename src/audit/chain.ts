// The hash chain of an organisation's audit log: every link covers its row, its
// number and, by the hash before it, all that came earlier.
import { createHash, type KeyObject } from "node:crypto";
import { CompactSign, compactVerify } from "jose";
import type { AuditHead, ChainEntry, StoredAuditRow } from "../store/port.js";

/** The end of a chain, or of its beginning up to some entry. */
export interface Link {
  readonly seq: number;
  /** SHA-256 in base64url. */
  readonly hash: string;
}

/** What the first entry of every chain follows. Rows name their organisation, so chains still differ. */
export const start: Link = { seq: 0, hash: Buffer.alloc(32).toString("base64url") };

/** What people call the log of an organisation; what belongs to none has a chain of its own. */
export function nameOfLog(rootUid: string): string {
  return rootUid === "" ? "(installation)" : rootUid;
}

/**
 * The link that seals `row` behind `previous`: SHA-256(previous hash || row || seq), where the row is
 * its canonical JSON and the number is in decimal.
 */
export function linkAfter(previous: Link, row: StoredAuditRow): Link {
  const seq = previous.seq + 1;
  const hash = createHash("sha256")
    .update(Buffer.from(previous.hash, "base64url"))
    .update(canonicalJson(row))
    .update(String(seq))
    .digest("base64url");
  return { seq, hash };
}

/**
 * Every field of a row in the form of RFC 8785: members in the order of their names, no blanks. All
 * values are texts and safe integers, which `JSON.stringify` writes in that form by itself.
 */
export function canonicalJson(row: StoredAuditRow): string {
  const { actorUid, id, method, remoteAddress, requestId, rootUid, subjectUid, timeMs, tokenId, type } = row;
  return JSON.stringify({
    actorUid,
    id,
    method,
    remoteAddress,
    requestId,
    rootUid,
    subjectUid,
    timeMs,
    tokenId,
    type,
  } satisfies Record<keyof StoredAuditRow, unknown>);
}

// The signed head of a chain. Hashes alone prove nothing: whoever can change a
// row can compute them anew.

/** A key that signs heads. */
export interface HeadKey {
  readonly kid: string;
  readonly key: KeyObject;
}

/** The state of a head's signature. */
export type HeadState = "signed" | "forged" | "unknown key";

/** Keeps a signature over something else from being taken for one over a head. */
const TYPE = "arbor-audit-head";

/** Signs a head with ES256; the signature is a JWS whose payload is left out (RFC 7515, appendix F). */
export async function signHead(head: Omit<AuditHead, "signature">, { kid, key }: HeadKey): Promise<AuditHead> {
  const jws = new CompactSign(payloadOf(head)).setProtectedHeader({ alg: "ES256", kid, typ: TYPE });
  const [header, , signature] = (await jws.sign(key)).split(".");
  return { ...head, signature: `${header}..${signature}` };
}

/**
 * Checks the signature of a head.
 *
 * @param keyOf gives the public key of that name, or undefined
 */
export async function stateOfHead(head: AuditHead, keyOf: (kid: string) => KeyObject | undefined): Promise<HeadState> {
  const [header, nothing, signature, ...rest] = head.signature.split(".");
  if (nothing !== "" || rest.length > 0) return "forged";
  const jws = `${header}.${Buffer.from(payloadOf(head)).toString("base64url")}.${signature}`;
  let known = true;
  try {
    const { protectedHeader } = await compactVerify(
      jws,
      ({ kid = "" }) => {
        const key = keyOf(kid);
        known = key !== undefined;
        if (key === undefined) throw new TypeError(`no key is called ${kid}`);
        return key;
      },
      { algorithms: ["ES256"] },
    );
    return protectedHeader.typ === TYPE ? "signed" : "forged";
  } catch {
    return known ? "forged" : "unknown key";
  }
}

function payloadOf({ hash, rootUid, seq, timeMs }: Omit<AuditHead, "signature">): Uint8Array {
  return Buffer.from(JSON.stringify({ hash, rootUid, seq, timeMs }));
}

/** What is written to seal some rows. */
export interface Batch {
  readonly entries: readonly ChainEntry[];
  /** One for each chain that grew. */
  readonly heads: readonly AuditHead[];
}

/**
 * Puts rows behind the ends of their chains and signs the new ends.
 *
 * @param rows in the order they are to have in their chains
 * @param ends the ends so far, by organisation
 */
export async function batchOf(
  rows: readonly StoredAuditRow[],
  ends: ReadonlyMap<string, Link>,
  key: HeadKey,
  timeMs: number,
): Promise<Batch> {
  const grown = new Map<string, Link>();
  const entries = rows.map((row): ChainEntry => {
    const { rootUid, id: auditId } = row;
    const link = linkAfter(grown.get(rootUid) ?? ends.get(rootUid) ?? start, row);
    grown.set(rootUid, link);
    return { rootUid, auditId, ...link };
  });
  const heads = await Promise.all([...grown].map(([rootUid, link]) => signHead({ rootUid, timeMs, ...link }, key)));
  return { entries, heads };
}
