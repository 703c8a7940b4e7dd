// Verifies the hash chain of an organisation over the API, with the code that verifies it on the host. Only the public
// keys of the service are trusted, or instead those that the caller pins.
import { createPublicKey, type JsonWebKey, type KeyObject } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { AuditService, GetChainRequestSchema, ListChainEntriesRequestSchema } from "#gen/arbor/audit/v1/audit_pb.js";
import type { Link } from "../../../audit/chain.js";
import {
  type AuditVerifyingKeys,
  type ChainPage,
  type ChainState,
  type LogReport,
  verifySignatures,
  walkChain,
  watchForHead,
} from "../../../audit/verify.js";
import { type MethodCall, readPages } from "../method-call.js";

const { getChain, listChainEntries } = AuditService.method;
const PAGE_SIZE = 500;
/** How often a chain is read again when retention deletes entries meanwhile. */
const MAX_TRIES = 3;
/** How often the keys are read again: a node knows the keys of another node within some seconds. */
const KEY_TRIES = 8;
const KEY_PAUSE_MS = 1_000;

/** What the caller knows about a chain. */
export interface ExpectedChain {
  /** The keys that may sign it; those of the service unless given. */
  readonly jwks?: JsonObject | undefined;
  /** An entry that it had before. */
  readonly head?: Link | undefined;
}

/** The state of a chain, and its end. */
export interface RemoteReport extends LogReport {
  readonly head: Link | undefined;
}

/** Verifies the chain of an organisation as of the moment when it begins. */
export async function verifyRemoteLog(
  call: MethodCall,
  scope: string,
  expected: ExpectedChain = {},
): Promise<RemoteReport> {
  for (let tries = 1; ; tries++) {
    const { report, isOutdated } = await verifyOnce(call, scope, expected);
    if (report.fault === undefined || !isOutdated || tries === MAX_TRIES) return report;
  }
}

/** Reads the public keys of the audit log as a JSON Web Key Set. */
export async function readAuditJwks(call: MethodCall, scope: string): Promise<JsonObject> {
  return parseJwks((await readChain(call, scope)).jwks);
}

async function verifyOnce(call: MethodCall, scope: string, { jwks, head: remembered }: ExpectedChain) {
  const response = await readChain(call, scope);
  const state = toState(response, scope);
  const search = watchForHead(remembered, state.checkpoint);
  const walk = await walkChain(scope, state, search.watch(readChainPages(call, scope)));
  const after = toState(await readChain(call, scope), scope);
  // The service may have sealed more rows meanwhile, which the next verification checks.
  const { head, checkpoint } = state;
  const hasGrown = walk.atHead !== undefined && (after.head?.seq ?? 0) >= walk.end.seq;
  const seen = hasGrown && walk.atHead && walk.fault === undefined ? { ...walk, end: walk.atHead } : walk;
  const keys = jwks === undefined ? createServiceKeys(call, scope, response) : createKeys(jwks);
  const report = await verifySignatures({ ...seen, sealed: seen.end.seq - (checkpoint?.seq ?? 0) }, keys);
  const fault = report.fault ?? search.findFault(seen.end);
  const isFirst = head === undefined && after.head !== undefined;
  const isOutdated = isFirst || after.checkpoint?.signature !== checkpoint?.signature;
  return { report: { ...report, fault, head: head && { seq: head.seq, hash: head.hash } }, isOutdated };
}

function readChain(call: MethodCall, scope: string): Promise<JsonObject> {
  return call(getChain, create(GetChainRequestSchema, { scope }));
}

async function* readChainPages(call: MethodCall, scope: string): AsyncGenerator<ChainPage> {
  const request = create(ListChainEntriesRequestSchema, { scope, pageSize: PAGE_SIZE });
  for await (const response of readPages(call, listChainEntries, request)) {
    const insertedId = toNumber(response.unsealedRowId);
    yield {
      entries: toObjects(response.entries).map(({ sequence, rowId, hash, row }) => ({
        ...{ seq: toNumber(sequence), auditId: toNumber(rowId), hash: toText(hash) },
        row: row === undefined ? null : toRow(row as JsonObject),
      })),
      insertedId: insertedId === 0 ? undefined : insertedId,
    };
  }
}

function toState({ head, checkpoint, ...chain }: JsonObject, rootUid: string): ChainState {
  const toSigned = (value: JsonObject) => ({
    ...{ rootUid, seq: toNumber(value.sequence), hash: toText(value.hash) },
    ...{ timeMs: toNumber(value.timeMs), signature: toText(value.signature) },
  });
  const rows = toNumber(chain.unsealedRows);
  return {
    head: head === undefined ? undefined : toSigned(head as JsonObject),
    checkpoint:
      checkpoint === undefined
        ? undefined
        : {
            ...toSigned(checkpoint as JsonObject),
            entryTimeMs: toNumber((checkpoint as JsonObject).entryTimeMs),
          },
    unsealed: {
      rows,
      firstId: rows === 0 ? null : toNumber(chain.firstUnsealedId),
      firstTimeMs: rows === 0 ? null : toNumber(chain.firstUnsealedTimeMs),
    },
  };
}

function toRow(row: JsonObject) {
  return {
    ...{ version: toNumber(row.version), id: toNumber(row.id), rootUid: toText(row.rootUid) },
    ...{ timeMs: toNumber(row.timeMs), type: toText(row.type), method: toText(row.method) },
    ...{ subjectUid: toText(row.subjectUid), actorUid: toText(row.actorUid), actorName: toText(row.actorName) },
    ...{ tokenId: toText(row.tokenId), requestId: toText(row.requestId), traceId: toText(row.traceId) },
    ...{ remoteAddress: toText(row.remoteAddress), bodyHash: toText(row.bodyHash), bodyBytes: 0 },
  };
}

function toNumber(value: unknown): number {
  return Number(value ?? 0);
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function toObjects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? (value as JsonObject[]) : [];
}

function parseJwks(text: unknown): JsonObject {
  return JSON.parse(toText(text) || "{}") as JsonObject;
}

function createKeys(jwks: JsonObject): AuditVerifyingKeys {
  const known = findKeys(jwks);
  return { findAuditVerifyingKey: (kid) => known.get(kid), refresh: async () => {} };
}

function createServiceKeys(call: MethodCall, scope: string, response: JsonObject): AuditVerifyingKeys {
  let known = findKeys(parseJwks(response.jwks));
  return {
    findAuditVerifyingKey: (kid) => known.get(kid),
    async refresh() {
      const before = known.size;
      for (let tries = 0; tries < KEY_TRIES && known.size === before; tries++) {
        await delay(KEY_PAUSE_MS);
        known = findKeys(await readAuditJwks(call, scope));
      }
    },
  };
}

/** The keys of a JSON Web Key Set by their kids. Those that cannot verify a signature of the audit log are left out. */
function findKeys(jwks: JsonObject): ReadonlyMap<string, KeyObject> {
  const usable = toObjects(jwks.keys).filter(
    ({ kty, crv, kid }) => kty === "EC" && crv === "P-256" && toText(kid) !== "",
  );
  return new Map(usable.map((jwk) => [toText(jwk.kid), createPublicKey({ key: jwk as JsonWebKey, format: "jwk" })]));
}
