// The handlers of TermsService in version 2beta1.
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type TermsAcceptance,
  TermsAcceptanceSchema,
  TermsService,
} from "#gen/chainguard/platform/iam/v2beta1/terms_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { serve, withOutcome } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import type { ListQuery, Page, TermsAcceptanceRow } from "../../store/port.js";
import { requireParentGroup } from "../groups/parent-group.js";
import type { IamDeps } from "../iam-deps.js";

const MAX_DOCUMENTS = 100;
const MAX_ID = 256;

const acceptances = defineResource({
  noun: "terms acceptance",
  type: "iam.chainguard.dev/TermsAcceptance",
  message: TermsAcceptanceSchema,
  sort: ["created_at"],
  mutable: {},
});

/** TermsService, ready to be served. */
export function termsV2beta1({ tokens }: IamDeps) {
  return serve(TermsService, {
    async acceptTerms({ group, documentIds }, call) {
      const { tx, caller, startMs } = call;
      await requireParentGroup(group, call);
      const bad = documentIds.some((id) => id === "" || id.length > MAX_ID || !isPrintable(id));
      if (bad || documentIds.length > MAX_DOCUMENTS) {
        const description = `documentIds must be at most ${MAX_DOCUMENTS} ids of 1 to ${MAX_ID} characters`;
        throw invalidArgument({ field: "documentIds", description });
      }
      for (const docId of documentIds) {
        await tx.terms.accept({ groupUid: group, docId, acceptedBy: caller.uid, createTimeMs: startMs });
      }
      return withOutcome({ group, documentIds }, { subjectUid: group });
    },

    async listTermsAcceptances(request, { tx, startMs }) {
      const { group } = request;
      // A group accepts a handful of documents: the list is cut from all of them.
      const context = { method: `ListTermsAcceptances ${group}`, tokens, nowMs: startMs, visible: [group] };
      const list = listQueryOf(acceptances, request, context);
      const page = pageOf(await tx.terms.of(group), list.query);
      return { termsAcceptances: page.rows.map(view), ...list.envelope(page) };
    },
  });
}

function pageOf(
  rows: readonly TermsAcceptanceRow[],
  { order, after, skip, limit }: ListQuery,
): Page<TermsAcceptanceRow> {
  const sign = order.descending ? -1 : 1;
  const key = ({ createTimeMs, docId }: TermsAcceptanceRow) => `${String(createTimeMs).padStart(16, "0")} ${docId}`;
  const sorted = [...rows].sort((a, b) => (key(a) < key(b) ? -sign : sign));
  const follows = (row: TermsAcceptanceRow, last: string) => (order.descending ? key(row) < last : key(row) > last);
  const rest = after === undefined ? sorted : sorted.filter((row) => follows(row, String(after.key)));
  const shown = rest.slice(skip, skip + limit);
  const last = shown.at(-1);
  const next = last && rest.length > skip + limit ? { key: key(last), uid: last.docId } : undefined;
  return { rows: shown, next, total: rows.length };
}

function view({ docId, acceptedBy, groupUid, createTimeMs }: TermsAcceptanceRow): TermsAcceptance {
  return {
    $typeName: "chainguard.platform.iam.v2beta1.TermsAcceptance",
    docId,
    acceptedBy,
    orgUid: groupUid,
    createTime: timestampFromMs(createTimeMs),
  };
}
