// SCIM credentials, by which a directory pushes its people and groups. The service has no SCIM endpoint yet, so it hands
// out no tokens; those of older versions can be revoked. The store keeps a hash of the token alone.
import { randomBytes } from "node:crypto";
import type { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { aborted, failedPrecondition, notFound, unimplemented } from "../../kernel/errors.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { timestampOf } from "../../kernel/time.js";
import { rootOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withOutcome } from "../../pipeline/handlers.js";
import { getRow } from "../../pipeline/resource/read.js";
import {
  buildDefaultRole,
  findDefaultRole,
  type IdentityProviderRow,
  identityProviderKind,
  type ScimState,
} from "../../store/iam/identity-providers.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import { identityProviders } from "./identity-provider.js";

const owner = builtinRoleUid("owner");

type Methods = "generateScimToken" | "regenerateScimToken" | "revokeScimToken" | "setScimEnabled";

/** The handlers of IdentityProvidersService that manage SCIM credentials. */
export const scimHandlers: Pick<Handlers<typeof IdentityProvidersService>, Methods> = {
  generateScimToken: () => rejectToken("GenerateScimToken"),
  regenerateScimToken: () => rejectToken("RegenerateScimToken"),

  async revokeScimToken({ identityProviderUid }, call) {
    const row = await getProvider(identityProviderUid, call);
    if (row.scim.tokenHash === "") throw notFound(identityProviders, row.uid, "there is no SCIM token");
    const { enabled } = row.scim;
    const { etag } = await storeState(row, { enabled, tokenHash: "", previousHash: "", revoked: true, etag: "" }, call);
    const response = { identityProviderUid, etag, enabled, revokeTime: timestampOf(call.startMs) };
    return withOutcome(response, { subjectUid: row.uid });
  },

  async setScimEnabled({ identityProviderUid, enabled, etag }, call) {
    const row = await getProvider(identityProviderUid, call);
    requireEtag(row.scim, etag);
    if (enabled) await requireTwoOwners(row, call);
    else requireDefaultRole(row);
    // With SCIM, the directory gives people their roles. A default role that is set afterwards stays.
    const roles = enabled && !row.scim.enabled ? buildDefaultRole() : {};
    const stored = await storeState({ ...row, ...roles }, { ...row.scim, enabled }, call);
    return withOutcome({ identityProviderUid, enabled, etag: stored.etag }, { subjectUid: row.uid });
  },
};

async function getProvider(uid: string, call: UnaryCall): Promise<IdentityProviderRow> {
  return getRow(call.tx, identityProviders, uid);
}

// Every change sets a new etag, so that two administrators do not overwrite each other.
async function storeState(row: IdentityProviderRow, state: ScimState, { tx, startMs }: UnaryCall): Promise<ScimState> {
  const scim = { ...state, etag: randomBytes(8).toString("hex") };
  await tx.table(identityProviderKind).replace({ ...row, scim, updateTimeMs: startMs });
  return scim;
}

function rejectToken(method: string): never {
  const reason = "no SCIM endpoint is served yet, so nothing would accept the token";
  throw unimplemented(`IdentityProvidersService.${method}: ${reason}`);
}

function requireEtag(scim: ScimState, etag: string): void {
  if (etag !== scim.etag) throw aborted("etag: the provider has changed since it was read");
}

function requireDefaultRole(row: IdentityProviderRow): void {
  if (findDefaultRole(row) !== undefined) return;
  throw failedPrecondition("DEFAULT_ROLE_REQUIRED", "without SCIM a provider needs a default role: set one first");
}

// A directory may remove a person by mistake, so owners must be left whom it does not manage.
async function requireTwoOwners(row: IdentityProviderRow, { tx }: UnaryCall): Promise<void> {
  if ((await tx.table(roleBindingKind).countManualHolders(rootOf(row.uid), owner)) >= 2) return;
  const rule = "enabling SCIM needs at least two owners of the root group whom no directory manages";
  throw failedPrecondition("OWNERS_REQUIRED", rule);
}
