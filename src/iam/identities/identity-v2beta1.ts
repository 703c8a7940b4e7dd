// The handlers of IdentitiesService in version 2beta1.
import { clone, create, equals } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  IdentitiesService,
  Identity_StaticKeysSchema,
  IdentitySchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { invalidArgument, notFound } from "../../kernel/errors.js";
import { personUid } from "../../kernel/ids.js";
import { type Handlers, serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { IdentityRow } from "../../store/port.js";
import { requireParentGroup } from "../groups/parent-group.js";
import type { IamDeps } from "../iam-deps.js";
import { requireSecureIssuer } from "../issuer-url.js";
import { requireOwner, requireRightsOf } from "../rights.js";
import { identities, identityView } from "./identity.js";
import { metadataView, patchMetadata } from "./metadata.js";
import { MAX_STATIC_KEY_LIFE_MS, type Relationship, relationshipToJson, relationTypes } from "./relationship.js";

/** IdentitiesService, ready to be served. */
export function identitiesV2beta1({ tokens, ids, trustedIssuers }: IamDeps) {
  const handlers: Handlers<typeof IdentitiesService> = {
    async getIdentity({ uid }, { tx }) {
      const row = await tx.identities.get(uid);
      if (row === undefined) throw notFound(identities, uid);
      return identityView(row);
    },

    async listIdentities(request, call) {
      const { tx, startMs } = call;
      const equals = request.relationshipType === 0 ? {} : { equals: { relation: request.relationshipType } };
      const context = {
        method: "ListIdentities",
        tokens,
        nowMs: startMs,
        visible: await call.visibleGroups(request.uidp),
        ...equals,
      };
      const list = listQueryOf(identities, request, context);
      const page = await tx.identities.list(list.query);
      return { identities: page.rows.map(identityView), ...list.envelope(page) };
    },

    async createIdentity({ parent, identity }, call) {
      const { tx, startMs } = call;
      await requireParentGroup(parent, call);
      const { name, description, company } = valuesOf(identities, identity);
      const row: IdentityRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        name,
        description,
        company,
        ...storedRelationship(identity?.relationship, startMs, trustedIssuers),
        issuer: "",
        subject: "",
        email: "",
        emailUnverified: "",
        providerUid: null,
        metadata: {},
        notBefore: 0,
        lastSeenTimeMs: startMs,
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.identities.insert(row);
      return identityView(row);
    },

    async updateIdentity({ identity, updateMask }, call) {
      const { tx, startMs } = call;
      const uid = identity?.uid ?? "";
      const before = await tx.identities.get(uid);
      if (before === undefined) throw notFound(identities, uid);
      const { name, description, company, ...members } = patchOf(
        identities,
        identity,
        updateMask,
        identityView(before),
      );
      const patch = defined({ name, description, company });
      if (Object.keys(members).length > 0) {
        const changed = changedRelationship(before, members, startMs, trustedIssuers);
        // Whoever changes how it is assumed could assume it, and so gain what it holds.
        if (changed) await requireRightsOf(call, uid);
        Object.assign(patch, changed);
      }
      if (Object.keys(patch).length === 0) return identityView(before);
      return identityView((await tx.identities.update(uid, patch, startMs)) ?? before);
    },

    async deleteIdentity({ uid }, { tx }) {
      if ((await tx.identities.get(uid)) === undefined) throw notFound(identities, uid);
      for (const binding of await tx.roleBindings.ofIdentity(uid)) await tx.roleBindings.delete(binding.uid);
      await tx.identities.delete(uid);
      await requireOwner(tx, uid);
      return {};
    },

    // A function of the pair alone: whether the person was ever seen stays their own business.
    lookupIdentity: ({ issuer, subject }) => ({ uid: personUid(issuer, subject) }),

    async updateIdentityMetadata({ identityMetadata, updateMask }, { tx, caller, startMs }) {
      const before = await tx.identities.get(caller.uid);
      if (before === undefined) throw notFound(identities, caller.uid);
      const metadata = patchMetadata(before.metadata, identityMetadata, updateMask);
      const row = await tx.identities.update(caller.uid, { metadata }, startMs);
      return metadataView(row ?? before);
    },
  };
  return serve(IdentitiesService, handlers);
}

type Stored = Pick<IdentityRow, "relation" | "relationship">;
type Members = Partial<Record<NonNullable<Relationship["case"]>, unknown>>;

function storedRelationship(
  relationship: Relationship | undefined,
  nowMs: number,
  trustedIssuers: readonly string[],
): Stored {
  if (relationship?.case === undefined) {
    const members = Object.keys(relationTypes).join(", ");
    throw invalidArgument({ field: "relationship", description: `relationship must be one of ${members}` });
  }
  if (relationship.case === "claimMatch" && relationship.value.iss.case === "issuer") {
    requireSecureIssuer(relationship.value.iss.value, "claimMatch", trustedIssuers);
  }
  const checked =
    relationship.case === "staticKeys"
      ? { ...relationship, value: withExpiry(relationship.value, nowMs) }
      : relationship;
  return { relation: relationTypes[relationship.case], relationship: relationshipToJson(checked) };
}

// Keys are not good for ever: a year when nothing else is said, and never more.
function withExpiry(keys: Extract<Relationship, { case: "staticKeys" }>["value"], nowMs: number) {
  const latestMs = nowMs + MAX_STATIC_KEY_LIFE_MS;
  const expiresMs = keys.expirationTime ? timestampMs(keys.expirationTime) : latestMs;
  if (expiresMs <= nowMs || expiresMs > latestMs) {
    const rule = "staticKeys.expirationTime must be in the future and at most 365 days ahead";
    throw invalidArgument({ field: "staticKeys.expirationTime", description: rule });
  }
  const limited = clone(Identity_StaticKeysSchema, create(Identity_StaticKeysSchema, keys));
  limited.expirationTime = timestampFromMs(expiresMs);
  return limited;
}

// Claims may give way to an AWS account and the reverse. The other kinds are
// another identity: keys and service principals are never exchanged for trust in claims. Undefined where
// nothing changes: what was stored may be no good any more, such as keys that have expired.
function changedRelationship(
  before: IdentityRow,
  members: Members,
  nowMs: number,
  trustedIssuers: readonly string[],
): Stored | undefined {
  const kept = identityView(before).relationship;
  const [set] = Object.entries(members).filter(([, value]) => value !== undefined && value !== 0);
  const cleared = kept.case !== undefined && kept.case in members && members[kept.case] === undefined;
  const next = set ? ({ case: set[0], value: set[1] } as Relationship) : cleared ? undefined : kept;
  if (next?.case !== undefined && isSame(next, kept)) return undefined;
  const after = storedRelationship(next, nowMs, trustedIssuers);
  const fixed = [relationTypes.staticKeys, relationTypes.servicePrincipal];
  if (after.relation !== before.relation && [after.relation, before.relation].some((one) => fixed.includes(one))) {
    const rule = "relationship cannot change to or from staticKeys and servicePrincipal";
    throw invalidArgument({ field: "relationship", description: rule });
  }
  return after;
}

function isSame(a: Relationship, b: Relationship): boolean {
  return equals(
    IdentitySchema,
    create(IdentitySchema, { relationship: a }),
    create(IdentitySchema, { relationship: b }),
  );
}

function defined(values: {
  name?: string | undefined;
  description?: string | undefined;
  company?: string | undefined;
}) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<
    Pick<IdentityRow, "name" | "description" | "company" | "relation" | "relationship">
  >;
}
