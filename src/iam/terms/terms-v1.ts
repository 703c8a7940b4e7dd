// Terms, version 1: a view of TermsService.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Terms, type TermsDocumentStatusSchema } from "#gen/chainguard/platform/iam/terms_pb.js";
import type { TermsAcceptance, TermsService } from "#gen/chainguard/platform/iam/v2beta1/terms_pb.js";
import { listInChunks, withOutcome } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";

const CHUNK_SIZE = 200;

/** Creates Terms of version 1. */
export function termsV1(served: ServedService<typeof TermsService>) {
  const v2 = operationsOf(served);
  return serve(Terms, {
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
  });
}

function toProtoV1({
  docId,
  acceptedBy,
  createTime,
}: TermsAcceptance): MessageInitShape<typeof TermsDocumentStatusSchema> {
  return { docId, acceptedBy, ...(createTime && { acceptedAt: createTime }) };
}
