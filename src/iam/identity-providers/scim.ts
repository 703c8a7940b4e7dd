// SCIM credentials, by which a directory pushes its people and groups: issue, rotate, revoke. The store keeps
// a hash of the token alone.
import { createHash, randomBytes } from "node:crypto";
import { type Duration, durationFromMs, type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { aborted, failedPrecondition, invalidArgument, notFound } from "../../kernel/errors.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withOutcome } from "../../pipeline/handlers.js";
import { getRow } from "../../pipeline/resource/read.js";
import type { IdentityProviderRow, ScimState } from "../../store/port.js";
import { formatScimPath, identityProviders } from "./identity-provider.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const DEFAULT_LIFE_MS = 365 * DAY_MS;
const MAX_LIFE_MS = 2 * 365 * DAY_MS;
const DEFAULT_OVERLAP_MS = 60 * 60 * 1000;
const MAX_OVERLAP_MS = DAY_MS;
const owner = builtinRoleUid("owner");

type Methods = "generateScimToken" | "regenerateScimToken" | "revokeScimToken" | "setScimEnabled";

/** The handlers of IdentityProvidersService that manage SCIM credentials. */
export const scimHandlers: Pick<Handlers<typeof IdentityProvidersService>, Methods> = {
  async generateScimToken(request, call) {
    const row = await getProvider(request.identityProviderUid, call);
    const { scim } = row;
    if (scim.tokenHash !== "" && !scim.revoked)
      throw failedPrecondition("SCIM_TOKEN_EXISTS", "there is a SCIM token already");
    const { token, tokenHash } = createToken();
    const state = withExpiry(
      { enabled: scim.enabled, tokenHash, previousHash: "", revoked: false, etag: "" },
      request,
      call,
    );
    const stored = await storeState(row, state, call);
    return withOutcome({ token, ...describeToken(row, stored) }, { subjectUid: row.uid });
  },

  async regenerateScimToken(request, call) {
    const row = await getProvider(request.identityProviderUid, call);
    const { scim } = row;
    if (scim.tokenHash === "" || scim.revoked) throw notFound(identityProviders, row.uid, "there is no SCIM token");
    requireEtag(scim, request.etag);
    const overlapMs = parseOverlap(request.overlap);
    // An earlier expiry still holds.
    const previousExpireTimeMs = Math.min(call.startMs + overlapMs, scim.expireTimeMs ?? Number.POSITIVE_INFINITY);
    const { token, tokenHash } = createToken();
    const next: ScimState = {
      enabled: scim.enabled,
      tokenHash,
      previousHash: scim.tokenHash,
      previousExpireTimeMs,
      revoked: false,
      etag: "",
    };
    const stored = await storeState(row, withExpiry(next, request, call), call);
    const response = {
      token,
      ...describeToken(row, stored),
      previousTokenExpireTime: timestampFromMs(previousExpireTimeMs),
      requestedOverlap: durationFromMs(overlapMs),
    };
    return withOutcome(response, { subjectUid: row.uid });
  },

  async revokeScimToken({ identityProviderUid }, call) {
    const row = await getProvider(identityProviderUid, call);
    if (row.scim.tokenHash === "") throw notFound(identityProviders, row.uid, "there is no SCIM token");
    const { enabled } = row.scim;
    const { etag } = await storeState(row, { enabled, tokenHash: "", previousHash: "", revoked: true, etag: "" }, call);
    const response = { identityProviderUid, etag, enabled, revokeTime: timestampFromMs(call.startMs) };
    return withOutcome(response, { subjectUid: row.uid });
  },

  async setScimEnabled({ identityProviderUid, enabled, etag }, call) {
    const row = await getProvider(identityProviderUid, call);
    requireEtag(row.scim, etag);
    if (enabled) await requireTwoOwners(row, call);
    const stored = await storeState(row, { ...row.scim, enabled }, call);
    return withOutcome({ identityProviderUid, enabled, etag: stored.etag }, { subjectUid: row.uid });
  },
};

async function getProvider(uid: string, call: UnaryCall): Promise<IdentityProviderRow> {
  return getRow(call.tx, identityProviders, uid);
}

// Every change sets a new etag, so that two administrators do not overwrite each other.
async function storeState(row: IdentityProviderRow, state: ScimState, { tx, startMs }: UnaryCall): Promise<ScimState> {
  const scim = { ...state, etag: randomBytes(8).toString("hex") };
  await tx.identityProviders.replace({ ...row, scim, updateTimeMs: startMs });
  return scim;
}

function createToken() {
  const token = `cgscim_${randomBytes(32).toString("hex")}`;
  return { token, tokenHash: createHash("sha256").update(token).digest("hex") };
}

function describeToken({ uid }: IdentityProviderRow, { etag, expireTimeMs }: ScimState) {
  const expiry = expireTimeMs === undefined ? {} : { expireTime: timestampFromMs(expireTimeMs) };
  return { identityProviderUid: uid, endpointUrl: formatScimPath(uid), etag, ...expiry };
}

function withExpiry(
  state: ScimState,
  request: { expireTime?: Timestamp | undefined; neverExpires: boolean },
  call: UnaryCall,
): ScimState {
  const { expireTime, neverExpires } = request;
  if (neverExpires && expireTime) {
    throw invalidArgument({ field: "expireTime", description: "expireTime must be absent where neverExpires is set" });
  }
  if (neverExpires) return state;
  const { startMs } = call;
  const expireTimeMs = expireTime ? timestampMs(expireTime) : startMs + DEFAULT_LIFE_MS;
  if (expireTimeMs <= startMs || expireTimeMs > startMs + MAX_LIFE_MS) {
    throw invalidArgument({
      field: "expireTime",
      description: "expireTime must be in the future and at most 2 years ahead",
    });
  }
  return { ...state, expireTimeMs };
}

function parseOverlap(overlap: Duration | undefined): number {
  if (overlap === undefined) return DEFAULT_OVERLAP_MS;
  const ms = Number(overlap.seconds) * 1000 + overlap.nanos / 1_000_000;
  if (ms >= 0 && ms <= MAX_OVERLAP_MS) return Math.floor(ms);
  throw invalidArgument({ field: "overlap", description: "overlap must be at most 24 hours" });
}

function requireEtag(scim: ScimState, etag: string): void {
  if (etag !== scim.etag) throw aborted("etag: the provider has changed since it was read");
}

// A directory may remove a person by mistake, so one owner must be left.
async function requireTwoOwners(row: IdentityProviderRow, { tx }: UnaryCall): Promise<void> {
  if ((await tx.roleBindings.countHolders(rootOf(row.uid), owner)) >= 2) return;
  throw failedPrecondition("OWNERS_REQUIRED", "enabling SCIM needs at least two owners of the root group");
}
