// The handlers of TokensService: who may update an identity revokes its tokens.
import { create } from "@bufbuild/protobuf";
import { type Revocation, RevocationSchema, TokensService } from "#gen/arbor/tokens/v1/tokens_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { formatBody } from "../../kernel/audit-body.js";
import { invalidArgument, notFound } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { parentOf, rootOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withOutcome } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { getRow } from "../../pipeline/resource/read.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import { identities } from "./identity.js";
import { describeIdentityUpdate, IDENTITY_UPDATED, revokeAllTokens, revokeOneToken } from "./revocation.js";

/** The form of a token id. Tokens with longer ones are not accepted (pipeline/auth/api-token.ts). */
const TOKEN_ID = /^[!-~]{1,128}$/;

/** How bodies of the audit log show what was revoked. */
const revocationView = { message: RevocationSchema, readers: [IdentitiesService.method.listIdentities] } as const;

/** Creates TokensService. */
export function tokensV1() {
  const handlers: Handlers<typeof TokensService> = {
    async revokeTokens({ uid, tokenId }, call) {
      assertTokenId(tokenId);
      return revoke(await getRow(call.tx, identities, uid), tokenId, call);
    },

    async revokePersonTokens({ identityProvider, uid, tokenId }, call) {
      assertTokenId(tokenId);
      const row = await call.tx.table(identityKind).find(uid);
      if (row?.providerUid !== identityProvider) throw notFound(identities, uid);
      // People are in no group. What is done to those of a provider is in the audit log of its organisation.
      return withOutcome(await revoke(row, tokenId, call), { subjectUid: identityProvider });
    },
  };
  return serve(TokensService, handlers, {
    revokeTokens: { body: { view: revocationView }, ownIdentity: true },
    revokePersonTokens: { body: { view: revocationView } },
  });
}

function assertTokenId(tokenId: string | undefined): void {
  if (tokenId === undefined || TOKEN_ID.test(tokenId)) return;
  const rule = "must be the id of a token, its `jti`, of at most 128 characters; leave it out to revoke all tokens";
  throw invalidArgument({ field: "tokenId", rule });
}

async function revoke(before: IdentityRow, tokenId: string | undefined, call: UnaryCall): Promise<Revocation> {
  const { tx, startMs } = call;
  const { uid } = before;
  if (tokenId !== undefined) {
    const changed = await revokeOneToken(tx, before, tokenId, startMs);
    if (changed !== undefined) await appendUpdate(before, changed, call);
    return create(RevocationSchema, { uid, tokenId });
  }
  const { identity, endedSessions } = await revokeAllTokens(tx, before, startMs);
  await appendUpdate(before, identity, call);
  return create(RevocationSchema, { uid, notBefore: timestampOf(identity.notBefore * 1000), endedSessions });
}

// For subscriptions, which are in groups, as people are not.
async function appendUpdate(before: IdentityRow, after: IdentityRow, call: UnaryCall): Promise<void> {
  const { uid: subjectUid } = before;
  if (parentOf(subjectUid) === undefined) return;
  const { tx, startMs: timeMs, method, caller, requestId, traceId, inbound } = call;
  await tx.audit.append({
    ...{ rootUid: rootOf(subjectUid), timeMs, type: IDENTITY_UPDATED, subjectUid, requestId, traceId },
    method: `/${method.parent.typeName}/${method.name}`,
    actorUid: caller.uid,
    tokenId: caller.principal.tokenId,
    remoteAddress: inbound.remoteAddress ?? "",
    body: formatBody(describeIdentityUpdate(before, after), IDENTITY_UPDATED),
  });
}
