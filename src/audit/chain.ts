// The hash chain of an organisation's audit log. Every link covers its row, its number and, through the previous hash,
// all earlier rows.
import { createHash, type JsonWebKey, type KeyObject } from "node:crypto";
import { CompactSign, compactVerify } from "jose";
import type { AuditCheckpoint, AuditHead, ChainEntry, StoredAuditRow } from "../store/tables/audit.js";
import type { Tx } from "../store/transaction.js";

/** The end of a chain, or of a prefix of it. */
export interface Link {
  readonly seq: number;
  /** SHA-256 in base64url. */
  readonly hash: string;
}

/** The link before the first entry of every chain. Rows contain their organisation, so chains differ. */
export const CHAIN_START: Link = { seq: 0, hash: Buffer.alloc(32).toString("base64url") };

/** Formats the name of an organisation's log. Rows of no organisation have a chain of their own. */
export function formatLogName(rootUid: string): string {
  return rootUid === "" ? "(installation)" : rootUid;
}

/** Whether this version of Arbor knows the canonical form of a row. */
export function isKnownVersion({ version }: StoredAuditRow): boolean {
  return version >= 1 && version <= 3;
}

/**
 * Builds the link of `row` after `previous`: SHA-256(previous hash || row || seq), with the row as canonical JSON and
 * the number in decimal.
 *
 * @throws RangeError for a row of an unknown version
 */
export function buildNextLink(previous: Link, row: StoredAuditRow): Link {
  const seq = previous.seq + 1;
  const hash = createHash("sha256")
    .update(Buffer.from(previous.hash, "base64url"))
    .update(formatCanonicalJson(row))
    .update(String(seq))
    .digest("base64url");
  return { seq, hash };
}

/**
 * Formats a row as canonical JSON (RFC 8785): members in order of their names, no whitespace. All values are strings
 * and safe integers, which `JSON.stringify` writes canonically.
 *
 * @throws RangeError for a row of an unknown version
 */
export function formatCanonicalJson(row: StoredAuditRow): string {
  return JSON.stringify(selectMembers(row));
}

/**
 * Selects the members that the canonical form of a row has, in its order. Those of older versions must stay as they are.
 * Version 3 has the hash of the body, and no id, which is a number of the whole installation: the number of the entry,
 * which every link covers, says where the row belongs.
 *
 * @throws RangeError for a row of an unknown version
 */
export function selectMembers(row: StoredAuditRow): Partial<StoredAuditRow> {
  const { actorName, actorUid, bodyHash, id, method, remoteAddress, requestId, rootUid } = row;
  const { subjectUid, timeMs, tokenId, traceId, type, version } = row;
  if (!isKnownVersion(row)) throw new RangeError(`row ${id} has the unknown version ${version}`);
  if (version === 1)
    return { actorUid, id, method, remoteAddress, requestId, rootUid, subjectUid, timeMs, tokenId, type };
  const sinceVersion2 = {
    method,
    remoteAddress,
    requestId,
    rootUid,
    subjectUid,
    timeMs,
    tokenId,
    traceId,
    type,
    version,
  };
  if (version === 2) return { actorName, actorUid, id, ...sinceVersion2 };
  return { actorName, actorUid, bodyHash, ...sinceVersion2 } satisfies Record<
    keyof Omit<StoredAuditRow, "id" | "bodyBytes">,
    unknown
  >;
}

// The signed head of a chain, and the signed checkpoint at which it begins. Hashes alone prove nothing, because a party that can change rows can recompute them.

/** A key that signs heads and checkpoints. */
export interface HeadKey {
  readonly kid: string;
  readonly key: KeyObject;
}

export interface AuditKeys {
  getAuditSigningKey(): HeadKey;
  findAuditVerifyingKey(kid: string): KeyObject | undefined;
  /** The public keys as JWKs (RFC 7517), newest first. */
  listAuditJwks(): readonly JsonWebKey[];
  /** Reads the keys in the transaction of a call. */
  at(tx: Tx): Promise<Pick<AuditKeys, "listAuditJwks">>;
  /** Reads the keys again: then they are at least those that were acknowledged before the call. */
  refresh(): Promise<void>;
}

/** The result of verifying a signature. */
export type SignatureState = "signed" | "forged" | "unknown key";

/** The types in the JWS header, so that no signature is accepted for something else. */
const HEAD_TYPE = "arbor-audit-head";
const CHECKPOINT_TYPE = "arbor-audit-checkpoint";

/** Signs a head with ES256. */
async function signHead(head: Omit<AuditHead, "signature">, key: HeadKey): Promise<AuditHead> {
  return { ...head, signature: await sign(encodeHead(head), HEAD_TYPE, key) };
}

/** Signs a checkpoint with ES256. */
export async function signCheckpoint(
  checkpoint: Omit<AuditCheckpoint, "signature">,
  key: HeadKey,
): Promise<AuditCheckpoint> {
  return { ...checkpoint, signature: await sign(encodeCheckpoint(checkpoint), CHECKPOINT_TYPE, key) };
}

// The signature is a JWS with detached payload (RFC 7515, appendix F).
async function sign(payload: Uint8Array, typ: string, { kid, key }: HeadKey): Promise<string> {
  const jws = new CompactSign(payload).setProtectedHeader({ alg: "ES256", kid, typ });
  const [header, , signature] = (await jws.sign(key)).split(".");
  return `${header}..${signature}`;
}

/** Finds the public key with a kid. */
type FindKey = (kid: string) => KeyObject | undefined;

export function verifyHead(head: AuditHead, findKey: FindKey): Promise<SignatureState> {
  return verifySignature(head.signature, encodeHead(head), HEAD_TYPE, findKey);
}

export function verifyCheckpoint(checkpoint: AuditCheckpoint, findKey: FindKey): Promise<SignatureState> {
  return verifySignature(checkpoint.signature, encodeCheckpoint(checkpoint), CHECKPOINT_TYPE, findKey);
}

async function verifySignature(
  detached: string,
  payload: Uint8Array,
  typ: string,
  findKey: FindKey,
): Promise<SignatureState> {
  const [header, nothing, signature, ...rest] = detached.split(".");
  if (nothing !== "" || rest.length > 0) return "forged";
  const jws = `${header}.${Buffer.from(payload).toString("base64url")}.${signature}`;
  let known = true;
  try {
    const { protectedHeader } = await compactVerify(
      jws,
      ({ kid = "" }) => {
        const key = findKey(kid);
        known = key !== undefined;
        if (key === undefined) throw new TypeError(`no key is called ${kid}`);
        return key;
      },
      { algorithms: ["ES256"] },
    );
    return protectedHeader.typ === typ ? "signed" : "forged";
  } catch {
    return known ? "forged" : "unknown key";
  }
}

function encodeHead({ hash, rootUid, seq, timeMs }: Omit<AuditHead, "signature">): Uint8Array {
  return Buffer.from(JSON.stringify({ hash, rootUid, seq, timeMs }));
}

function encodeCheckpoint(checkpoint: Omit<AuditCheckpoint, "signature">): Uint8Array {
  const { entryTimeMs, hash, rootUid, seq, timeMs } = checkpoint;
  return Buffer.from(JSON.stringify({ entryTimeMs, hash, rootUid, seq, timeMs }));
}

/** The chain entries and heads of some rows. */
export interface Batch {
  readonly entries: readonly ChainEntry[];
  /** One for each extended chain. */
  readonly heads: readonly AuditHead[];
}

/**
 * Appends rows to their chains and signs the new heads.
 *
 * @param rows in the order of their chains
 * @param ends the current ends, by organisation
 */
export async function buildBatch(
  rows: readonly StoredAuditRow[],
  ends: ReadonlyMap<string, Link>,
  key: HeadKey,
  timeMs: number,
): Promise<Batch> {
  const grown = new Map<string, Link>();
  const entries = rows.map((row): ChainEntry => {
    const { rootUid, id: auditId } = row;
    const link = buildNextLink(grown.get(rootUid) ?? ends.get(rootUid) ?? CHAIN_START, row);
    grown.set(rootUid, link);
    return { rootUid, auditId, ...link };
  });
  const heads = await Promise.all([...grown].map(([rootUid, link]) => signHead({ rootUid, timeMs, ...link }, key)));
  return { entries, heads };
}
