// SCIM of an identity provider, by which its directory pushes people: whether it is on, and the tokens of the directory.
import { randomBytes } from "node:crypto";
import { type Duration, durationFromMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type IdentityProvidersService,
  IdentityProvider_SCIM_CredentialState as State,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { aborted, failedPrecondition, invalidArgument, notFound } from "../../kernel/errors.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { timestampOf } from "../../kernel/time.js";
import { rootOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withOutcome } from "../../pipeline/handlers.js";
import { requireContracted } from "../../pipeline/resource/contracted.js";
import { getRow } from "../../pipeline/resource/read.js";
import {
  buildDefaultRole,
  type IdentityProviderRow,
  identityProviderKind,
  type ScimState,
} from "../../store/iam/identity-providers.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import { buildScimUrl, identityProviders } from "./identity-provider.js";
import { createScimToken, findCredentialState, isCurrentLive } from "./scim-credential.js";

/** The first version that serves the endpoint for directories. */
const SINCE = "1.15.0";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
const DEFAULT_LIFE_MS = 365 * DAY_MS;
const MAX_LIFE_YEARS = 2;
const DEFAULT_OVERLAP_MS = HOUR_MS;
const MAX_OVERLAP_MS = DAY_MS;
/** The longest duration that responses can have. */
const MAX_DURATION_MS = 315_576_000_000_000;

const owner = builtinRoleUid("owner");

type Methods = "generateScimToken" | "regenerateScimToken" | "revokeScimToken" | "setScimEnabled";

/**
 * Creates the handlers of IdentityProvidersService that manage SCIM.
 *
 * @param baseUrl of the service, which the URLs of endpoints begin with
 */
export function createScimHandlers({
  baseUrl,
}: {
  readonly baseUrl: string;
}): Pick<Handlers<typeof IdentityProvidersService>, Methods> {
  const describeToken = ({ uid }: IdentityProviderRow, { etag, expireTimeMs }: ScimState) => ({
    ...{ identityProviderUid: uid, endpointUrl: buildScimUrl(baseUrl, uid), etag },
    ...(expireTimeMs !== undefined && { expireTime: timestampOf(expireTimeMs) }),
  });

  return {
    async generateScimToken(request, call) {
      const row = await getProvider(request.identityProviderUid, call);
      const state = findCredentialState(row.scim, call.startMs);
      if (state === State.LIVE || state === State.ROTATING) {
        throw failedPrecondition("SCIM_TOKEN_EXISTS", "there is a valid SCIM token: regenerate it, or revoke it first");
      }
      const { token, tokenHash } = createScimToken();
      const next = { enabled: row.scim.enabled, tokenHash, previousHash: "", revoked: false };
      const stored = await storeState(row, { ...next, ...parseExpiry(request, call.startMs) }, call);
      return withOutcome({ token, ...describeToken(row, stored) }, { subjectUid: row.uid });
    },

    // Also of a token that has expired or was revoked, which stays invalid.
    async regenerateScimToken(request, call) {
      const row = await getProvider(request.identityProviderUid, call);
      const { scim } = row;
      if (findCredentialState(scim, call.startMs) === State.NOT_ISSUED) throw noToken(row);
      requireEtag(scim, request.etag);
      const overlapMs = parseOverlap(request.overlap);
      const { token, tokenHash } = createScimToken();
      const next = { enabled: scim.enabled, tokenHash, revoked: false, ...replaceToken(scim, overlapMs, call.startMs) };
      const stored = await storeState(row, { ...next, ...parseExpiry(request, call.startMs) }, call);
      const { previousExpireTimeMs } = next;
      const response = {
        token,
        ...describeToken(row, stored),
        ...(previousExpireTimeMs !== undefined && { previousTokenExpireTime: timestampOf(previousExpireTimeMs) }),
        requestedOverlap: durationFromMs(overlapMs),
      };
      return withOutcome(response, { subjectUid: row.uid });
    },

    async revokeScimToken({ identityProviderUid }, call) {
      const row = await getProvider(identityProviderUid, call);
      if (row.scim.tokenHash === "") throw noToken(row);
      const { enabled } = row.scim;
      const revoked = { enabled, tokenHash: "", previousHash: "", revoked: true, expireTimeMs: call.startMs };
      const { etag } = await storeState(row, revoked, call);
      const response = { identityProviderUid, etag, enabled, revokeTime: timestampOf(call.startMs) };
      return withOutcome(response, { subjectUid: row.uid });
    },

    // Whoever stops a directory must be able to at once, so only turning it on has conditions.
    async setScimEnabled({ identityProviderUid, enabled, etag }, call) {
      const row = await getProvider(identityProviderUid, call);
      requireEtag(row.scim, etag);
      if (enabled) {
        await requireContracted(call.tx, "SCIM that is on", SINCE);
        await requireTwoOwners(row, call);
      }
      // With SCIM, the directory gives people their roles. A default role that is set afterwards stays.
      const roles = enabled && !row.scim.enabled ? buildDefaultRole() : {};
      const stored = await storeState({ ...row, ...roles }, { ...row.scim, enabled }, call);
      return withOutcome({ identityProviderUid, enabled, etag: stored.etag }, { subjectUid: row.uid });
    },
  };
}

async function getProvider(uid: string, call: UnaryCall): Promise<IdentityProviderRow> {
  return getRow(call.tx, identityProviders, uid);
}

// Every change sets a new etag, so that two administrators do not overwrite each other.
async function storeState(
  row: IdentityProviderRow,
  state: Omit<ScimState, "etag">,
  { tx, startMs }: UnaryCall,
): Promise<ScimState> {
  const scim = { ...state, etag: randomBytes(8).toString("hex") };
  await tx.table(identityProviderKind).replace({ ...row, scim, updateTimeMs: startMs });
  return scim;
}

// What is left of the token that a new one replaces: it ends after the overlap, unless it was to end before.
function replaceToken(
  scim: ScimState,
  overlapMs: number,
  nowMs: number,
): Pick<ScimState, "previousHash" | "previousExpireTimeMs"> {
  if (!isCurrentLive(scim, nowMs)) return { previousHash: "" };
  const { tokenHash, expireTimeMs = Number.POSITIVE_INFINITY } = scim;
  return {
    previousHash: tokenHash,
    previousExpireTimeMs: Math.min(nowMs + Math.min(overlapMs, MAX_OVERLAP_MS), expireTimeMs),
  };
}

function parseExpiry(
  { expireTime, neverExpires }: { readonly expireTime?: Timestamp | undefined; readonly neverExpires: boolean },
  nowMs: number,
): Pick<ScimState, "expireTimeMs"> {
  if (neverExpires && expireTime !== undefined) {
    throw invalidArgument({ field: "expireTime", rule: "must be absent where {} is set", args: ["neverExpires"] });
  }
  if (neverExpires) return {};
  const last = new Date(nowMs);
  last.setUTCFullYear(last.getUTCFullYear() + MAX_LIFE_YEARS);
  const expireTimeMs = expireTime === undefined ? nowMs + DEFAULT_LIFE_MS : timestampMs(expireTime);
  if (expireTimeMs > nowMs && expireTimeMs <= last.getTime()) return { expireTimeMs };
  throw invalidArgument({
    field: "expireTime",
    rule: `must be in the future, at most ${MAX_LIFE_YEARS} years from now`,
  });
}

// One that is too long is cut, not rejected: the response has both.
function parseOverlap(overlap: Duration | undefined): number {
  if (overlap === undefined) return DEFAULT_OVERLAP_MS;
  const ms = Number(overlap.seconds) * 1000 + Math.floor(overlap.nanos / 1_000_000);
  if (ms >= 0 && ms <= MAX_DURATION_MS) return ms;
  throw invalidArgument({ field: "overlap", rule: "must be a duration from 0 seconds on" });
}

function noToken({ uid }: IdentityProviderRow) {
  return notFound(identityProviders, uid, "there is no SCIM token");
}

function requireEtag(scim: ScimState, etag: string): void {
  if (etag !== scim.etag) throw aborted("etag: the provider has changed since it was read");
}

// A directory may remove a person by mistake, so owners must be left whom it does not manage.
async function requireTwoOwners(row: IdentityProviderRow, { tx }: UnaryCall): Promise<void> {
  if ((await tx.table(roleBindingKind).countHolders(rootOf(row.uid), owner)) >= 2) return;
  const rule = "enabling SCIM needs at least two owners of the root group whom no directory manages";
  throw failedPrecondition("OWNERS_REQUIRED", rule);
}
