// The handlers of AuditService by which clients verify a chain themselves (docs/audit.md). A row has exactly the values
// that its seal covers, because clients compute hashes from them.
import { create } from "@bufbuild/protobuf";
import {
  type Chain,
  ChainCheckpointSchema,
  type ChainEntry,
  ChainEntrySchema,
  ChainHeadSchema,
  ChainSchema,
  type GetChainRequest,
  type ListChainEntriesRequest,
  SealedRowSchema,
} from "#gen/arbor/audit/v1/audit_pb.js";
import { invalidArgument } from "../kernel/errors.js";
import type { PageTokens } from "../kernel/page-token.js";
import { isUidp, parentOf } from "../kernel/uidp.js";
import type { UnaryCall } from "../pipeline/call.js";
import type { SealedRow } from "../store/port.js";
import type { AuditKeys } from "./chain.js";
import { BEFORE_ALL_ENTRIES } from "./verify.js";

export interface ChainHandlersDeps {
  readonly tokens: PageTokens;
  readonly keys: Pick<AuditKeys, "listAuditJwks">;
}

const DEFAULT_PAGE_SIZE = 200;
/** To read as many rows takes some 5 ms. */
const MAX_PAGE_SIZE = 500;
/** How many unsealed rows are counted. A running service seals within a second. */
const MAX_UNSEALED = 1_000;

/** Creates the handlers. */
export function createChainHandlers({ tokens, keys }: ChainHandlersDeps) {
  async function getChain({ scope }: GetChainRequest, { tx }: UnaryCall): Promise<Chain> {
    assertOrganisation(scope);
    const [head, checkpoint] = [await tx.auditChain.findHead(scope), await tx.auditCheckpoints.find(scope)];
    const settledId = (await tx.auditChain.findSealer())?.settledId ?? 0;
    const range = { afterId: settledId, lastId: Number.MAX_SAFE_INTEGER };
    const unsealed = await tx.auditChain.listUnsealedBetween(scope, range, MAX_UNSEALED);
    const [first] = unsealed;
    return create(ChainSchema, {
      organizationUid: scope,
      ...(head && {
        head: create(ChainHeadSchema, {
          ...{ sequence: BigInt(head.seq), hash: head.hash },
          ...{ timeMs: BigInt(head.timeMs), signature: head.signature },
        }),
      }),
      ...(checkpoint && {
        checkpoint: create(ChainCheckpointSchema, {
          ...{ sequence: BigInt(checkpoint.seq), hash: checkpoint.hash },
          entryTimeMs: BigInt(checkpoint.entryTimeMs),
          ...{ timeMs: BigInt(checkpoint.timeMs), signature: checkpoint.signature },
        }),
      }),
      jwks: JSON.stringify({ keys: keys.listAuditJwks() }),
      unsealedRows: BigInt(unsealed.length),
      firstUnsealedId: BigInt(first?.id ?? 0),
      firstUnsealedTimeMs: BigInt(first?.timeMs ?? 0),
      settledId: BigInt(settledId),
    });
  }

  async function listChainEntries(request: ListChainEntriesRequest, { tx, startMs }: UnaryCall) {
    const { scope, pageSize, pageToken } = request;
    assertOrganisation(scope);
    if (pageSize < 0) throw invalidArgument({ field: "pageSize", description: "pageSize must not be negative" });
    const limit = Math.min(pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE);
    const binding = JSON.stringify(["ListChainEntries", scope]);
    const cursor = pageToken === "" ? undefined : tokens.read(pageToken, binding, startMs);
    const afterSeq = cursor === undefined ? BEFORE_ALL_ENTRIES : Number(cursor.key);
    // The highest row id of the pages before.
    const afterId = cursor === undefined ? Number.MIN_SAFE_INTEGER : Number(cursor.uid);
    const entries = await tx.auditChain.listEntries(scope, afterSeq, limit);
    const last = entries.length === limit ? entries.at(-1) : undefined;
    const settledId = (await tx.auditChain.findSealer())?.settledId ?? 0;
    const highestId = entries.reduce((highest, { auditId }) => Math.max(highest, auditId), afterId);
    const range = { afterId, lastId: last === undefined ? settledId : Math.min(highestId, settledId) };
    const [unsealed] = await tx.auditChain.listUnsealedBetween(scope, range, 1);
    const next = last && tokens.create({ key: last.seq, uid: String(highestId), skip: 0 }, binding, startMs);
    return { entries: entries.map(toProto), unsealedRowId: BigInt(unsealed?.id ?? 0), nextPageToken: next ?? "" };
  }

  return { getChain, listChainEntries };
}

function toProto({ seq, auditId, hash, row }: SealedRow): ChainEntry {
  return create(ChainEntrySchema, {
    sequence: BigInt(seq),
    rowId: BigInt(auditId),
    hash,
    ...(row && { row: create(SealedRowSchema, { ...row, id: BigInt(row.id), timeMs: BigInt(row.timeMs) }) }),
  });
}

function assertOrganisation(scope: string): void {
  if (isUidp(scope) && parentOf(scope) === undefined) return;
  throw invalidArgument({ field: "scope", description: "scope must be the uid of an organisation" });
}
