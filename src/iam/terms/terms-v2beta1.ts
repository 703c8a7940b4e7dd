// The handlers of TermsService in version 2beta1.
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { TermsService as StableTermsService } from "#gen/chainguard/platform/iam/v2/terms_pb.js";
import {
  type TermsAcceptance,
  TermsAcceptanceSchema,
  TermsService,
} from "#gen/chainguard/platform/iam/v2beta1/terms_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { serve, withOutcome } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import type { ListQuery, Page, TermsAcceptanceRow, Tx } from "../../store/port.js";
import { groups } from "../groups/group.js";

const MAX_DOCUMENTS = 100;
const MAX_ID = 256;

/** The acceptance of terms by a group. It has no uid of its own. */
export const termsAcceptances = defineResource({
  displayName: "terms acceptance",
  type: "iam.chainguard.dev/TermsAcceptance",
  plural: "terms acceptances",
  message: TermsAcceptanceSchema,
  table: (tx) => ({ get: () => undefined, list: (query) => readPage(query, tx) }),
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
  return serve(TermsService, {
    async acceptTerms({ group, documentIds }, call) {
      const { tx, caller, startMs } = call;
      await getRow(tx, groups, group);
      const isInvalid = documentIds.some((id) => id === "" || id.length > MAX_ID || !isPrintable(id));
      if (isInvalid || documentIds.length > MAX_DOCUMENTS) {
        const description = `documentIds must be at most ${MAX_DOCUMENTS} ids of 1 to ${MAX_ID} characters`;
        throw invalidArgument({ field: "documentIds", description });
      }
      for (const docId of documentIds) {
        await tx.terms.accept({ groupUid: group, docId, acceptedBy: caller.uid, createTimeMs: startMs });
      }
      return withOutcome({ group, documentIds }, { subjectUid: group });
    },

    async listTermsAcceptances(request, call) {
      const { group } = request;
      const options = { method: `ListTermsAcceptances ${group}`, visible: [group] };
      const { resources, ...page } = await listResources(call, termsAcceptances, request, toProto, options);
      return { termsAcceptances: resources, ...page };
    },
  });
}

// A group accepts few documents, so a page is cut from all of them.
async function readPage(query: ListQuery, tx: Tx): Promise<Page<TermsAcceptanceRow>> {
  const { visible, order, after, skip, limit } = query;
  const rows = await tx.terms.of(visible[0] ?? "");
  const sign = order.descending ? -1 : 1;
  const key = ({ createTimeMs, docId }: TermsAcceptanceRow) => `${String(createTimeMs).padStart(16, "0")} ${docId}`;
  const sorted = [...rows].sort((a, b) => (key(a) < key(b) ? -sign : sign));
  const follows = (row: TermsAcceptanceRow, last: string) => (order.descending ? key(row) < last : key(row) > last);
  const rest = after === undefined ? sorted : sorted.filter((row) => follows(row, String(after.key)));
  const cut = rest.slice(skip, skip + limit);
  const last = cut.at(-1);
  const next = last && rest.length > skip + limit ? { key: key(last), uid: last.docId } : undefined;
  return { rows: cut, next, total: rows.length };
}

function toProto({ docId, acceptedBy, groupUid, createTimeMs }: TermsAcceptanceRow): TermsAcceptance {
  return {
    $typeName: "chainguard.platform.iam.v2beta1.TermsAcceptance",
    docId,
    acceptedBy,
    orgUid: groupUid,
    createTime: timestampFromMs(createTimeMs),
  };
}
