// Terms: the acceptances of groups, TermsService in version 2beta1, and version 1 as a view of it.

import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AcceptTermsResponseSchema as AcceptTermsResponseV1Schema,
  Terms,
  type TermsDocumentStatusSchema,
} from "#gen/chainguard/platform/iam/terms_pb.js";
import { TermsService as StableTermsService } from "#gen/chainguard/platform/iam/v2/terms_pb.js";
import {
  AcceptTermsResponseSchema,
  type TermsAcceptance,
  TermsAcceptanceSchema,
  TermsService,
} from "#gen/chainguard/platform/iam/v2beta1/terms_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { lineageOf } from "../../kernel/uidp.js";
import { type Handlers, listInChunks, withOutcome } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import type { ListQuery, Page } from "../../store/lists/query.js";
import type { TermsAcceptanceRow } from "../../store/tables/groups.js";
import type { Tx } from "../../store/transaction.js";
import { groups } from "../groups/group.js";

const MAX_DOCUMENTS = 100;
const MAX_ID = 256;

/** The acceptance of terms by a group. It has no uid of its own. */
export const termsAcceptances = defineResource({
  displayName: "terms acceptance",
  type: "iam.chainguard.dev/TermsAcceptance",
  plural: "terms acceptances",
  message: TermsAcceptanceSchema,
  table: (tx) => ({ find: async () => undefined, list: (query) => readPage(query, tx) }),
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { cascade: (tx, groupUid) => tx.terms.deleteOf(groupUid) },
  },
  stable: StableTermsService,
  sort: ["created_at"],
  mutable: {},
});

/** Creates TermsService. */
export function termsV2beta1({ listResources }: Pick<ResourceDeps, "listResources">) {
  const handlers: Handlers<typeof TermsService> = {
    async acceptTerms({ group, documentIds }, call) {
      const { tx, caller, startMs } = call;
      await getRow(tx, groups, group);
      const isInvalid = documentIds.some((id) => id === "" || id.length > MAX_ID || !isPrintable(id));
      if (isInvalid || documentIds.length > MAX_DOCUMENTS) {
        const rule = `must be at most ${MAX_DOCUMENTS} ids of 1 to ${MAX_ID} characters`;
        throw invalidArgument({ field: "documentIds", rule });
      }
      for (const docId of documentIds) {
        await tx.terms.accept({ groupUid: group, docId, acceptedBy: caller.uid, createTimeMs: startMs });
      }
      return withOutcome({ group, documentIds }, { subjectUid: group });
    },

    // What a group above has accepted holds for the group as well. Who accepted it there is shown to those who may
    // list the acceptances of that group.
    async listTermsAcceptances(request, call) {
      const { group } = request;
      const options = { method: `ListTermsAcceptances ${group}`, visible: lineageOf(group) };
      const { resources, ...page } = await listResources(
        call,
        termsAcceptances,
        request,
        (row) => toProto(row, call.caller.holdsNeeded(row.groupUid)),
        options,
      );
      return { termsAcceptances: resources, ...page };
    },
  };
  const view = { message: AcceptTermsResponseSchema, readers: [TermsService.method.listTermsAcceptances] } as const;
  return serve(TermsService, handlers, { acceptTerms: { body: { view } } });
}

// A group and those above it accept few documents, so a page is cut from all of them.
async function readPage(query: ListQuery, tx: Tx): Promise<Page<TermsAcceptanceRow>> {
  const { visible, order, after, skip, limit } = query;
  const rows: TermsAcceptanceRow[] = [];
  for (const group of visible) rows.push(...(await tx.terms.findByGroup(group)));
  const sign = order.descending ? -1 : 1;
  const key = ({ createTimeMs, docId, groupUid }: TermsAcceptanceRow) =>
    `${String(createTimeMs).padStart(16, "0")} ${docId} ${groupUid}`;
  const sorted = [...rows].sort((a, b) => (key(a) < key(b) ? -sign : sign));
  const follows = (row: TermsAcceptanceRow, last: string) => (order.descending ? key(row) < last : key(row) > last);
  const rest = after === undefined ? sorted : sorted.filter((row) => follows(row, String(after.key)));
  const cut = rest.slice(skip, skip + limit);
  const last = cut.at(-1);
  const next = last && rest.length > skip + limit ? { key: key(last), uid: last.docId } : undefined;
  return { rows: cut, next, total: rows.length };
}

function toProto(row: TermsAcceptanceRow, showsWho: boolean): TermsAcceptance {
  const { docId, acceptedBy, groupUid, createTimeMs } = row;
  return {
    $typeName: "chainguard.platform.iam.v2beta1.TermsAcceptance",
    docId,
    acceptedBy: showsWho ? acceptedBy : "",
    orgUid: groupUid,
    createTime: timestampOf(createTimeMs),
  };
}

const CHUNK_SIZE = 200;

/** Creates Terms of version 1. */
export function termsV1(served: ServedService<typeof TermsService>) {
  const v2 = createOperations(served);
  const handlers: Handlers<typeof Terms> = {
    async acceptTerms({ group, documentIds }, call) {
      const accepted = await v2.acceptTerms({ group, documentIds }, call);
      return withOutcome({ group: accepted.group, documentIds: accepted.documentIds }, { subjectUid: group });
    },

    // Acceptances have no uid to continue after, so the chunks are the pages of version 2.
    listAccepted: listInChunks(async ({ group }, call, pageToken: string | undefined) => {
      const request = { group, pageSize: CHUNK_SIZE, ...(pageToken !== undefined && { pageToken }) };
      const { termsAcceptances, nextPageToken } = await v2.listTermsAcceptances(request, call);
      return { chunk: { items: termsAcceptances.map(toProtoV1) }, next: nextPageToken || undefined };
    }),
  };
  const view = { message: AcceptTermsResponseV1Schema, readers: [Terms.method.listAccepted] } as const;
  return serve(Terms, handlers, { acceptTerms: { body: { view } } });
}

function toProtoV1({
  docId,
  acceptedBy,
  createTime,
}: TermsAcceptance): MessageInitShape<typeof TermsDocumentStatusSchema> {
  return { docId, acceptedBy, ...(createTime && { acceptedAt: createTime }) };
}
