// The handlers of IdentitiesService in version 2beta1.
import { clone, create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  IdentitiesService,
  Identity_StaticKeysSchema,
  IdentitySchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { personUid } from "../../kernel/ids.js";
import { timestampOf } from "../../kernel/time.js";
import { parentOf } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { type FormerPath, serve } from "../../pipeline/method-table.js";
import { isSameMessage } from "../../pipeline/resource/located-values.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { requireSecureIssuer } from "../../pipeline/resource/rules.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import type { Store } from "../../store/store.js";
import { groups } from "../groups/group.js";
import { requireGuardAllows } from "../groups/issuer-guard.js";
import { requireRightsOf } from "../rights.js";
import { requireConditionsApply } from "./conditions.js";
import { beginDeletion, finishDeletion } from "./deletion.js";
import {
  chooseName,
  formatActorName,
  identities,
  identityToProto,
  identityView,
  metadataToProto,
  ownIdentity,
  patchMetadata,
} from "./identity.js";
import {
  MAX_STATIC_KEY_LIFE_MS,
  type Relationship,
  relationshipFromJson,
  relationshipToJson,
  relationTypes,
} from "./relationship.js";

export interface IdentityDeps extends Pick<ResourceDeps, "listResources" | "ids"> {
  /** Origins of issuers that may be http. */
  readonly trustedIssuers: readonly string[];
  readonly store: Store;
}

const bodies = defineBodies(identityView, findsResource(identities, identityToProto));

// Those of version 1 with the prefix of version 2 (docs/v1.md).
const formerPaths: readonly FormerPath[] = [
  { current: "/identities:lookupIdentity", former: "/identities/lookup" },
  { current: "/identities:updateIdentityMetadata", former: "/identities/metadata" },
];

export function identitiesV2beta1({ listResources, ids, trustedIssuers, store }: IdentityDeps) {
  const handlers: Handlers<typeof IdentitiesService> = {
    getIdentity: ({ uid }, { tx }) => getResource(tx, identities, uid, identityToProto),

    async listIdentities(request, call) {
      const { resources, ...page } = await listResources(call, identities, request, identityToProto);
      return { identities: resources, ...page };
    },

    async createIdentity({ parent, identity }, call) {
      const { tx, startMs } = call;
      await getRow(tx, groups, parent);
      const { columns } = separateMembers(buildValues(identities, identity));
      const relationship = buildRelationship(identity?.relationship, startMs, trustedIssuers);
      await requireGuardAllows(tx, parent, relationshipFromJson(relationship.relationship));
      const row: IdentityRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        ...columns,
        ...relationship,
        conditions: [],
        issuer: "",
        subject: "",
        email: "",
        emailUnverified: "",
        providerUid: null,
        metadata: {},
        notBefore: 0,
        revokeTimeMs: 0,
        lastSeenTimeMs: startMs,
        deleteTimeMs: null,
        deactivateTimeMs: null,
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.table(identityKind).insert(row);
      return identityToProto(row);
    },

    async updateIdentity({ identity, updateMask }, call) {
      const { tx, startMs } = call;
      const uid = identity?.uid ?? "";
      const before = await getRow(tx, identities, uid);
      // Nobody but the person gets here: people are in no group.
      if (parentOf(uid) === undefined) {
        const { name } = buildPatch(ownIdentity, identity, updateMask, identityToProto(before));
        const row =
          name === undefined ? before : await tx.table(identityKind).update(uid, chooseName(before, name), startMs);
        return identityToProto(row ?? before);
      }
      const { columns, members } = separateMembers(
        buildPatch(identities, identity, updateMask, identityToProto(before)),
      );
      const changed =
        Object.keys(members).length > 0 ? changeRelationship(before, members, startMs, trustedIssuers) : undefined;
      if (changed) {
        // Somebody who changes how an identity is assumed could assume it and gain its rights.
        await requireRightsOf(call, uid);
        await requireGuardAllows(tx, uid, relationshipFromJson(changed.relationship));
        requireConditionsApply({ ...before, ...changed });
      }
      const patch = { ...columns, ...changed };
      if (Object.keys(patch).length === 0) return identityToProto(before);
      return identityToProto((await tx.table(identityKind).update(uid, patch, startMs)) ?? before);
    },

    async deleteIdentity({ uid }, call) {
      const row = await getRow(call.tx, identities, uid);
      if (!(await beginDeletion(call.tx, uid, call.startMs))) call.finish = () => finishDeletion(store, uid);
      if (uid === call.caller.uid) call.actorName = formatActorName(row);
      return {};
    },

    // The uid is a hash of issuer and subject alone, so the response does not show whether the person is registered.
    lookupIdentity: ({ issuer, subject }) => ({ uid: personUid(issuer, subject) }),

    async updateIdentityMetadata({ identityMetadata, updateMask }, { tx, caller, startMs }) {
      const before = await getRow(tx, identities, caller.uid);
      const metadata = patchMetadata(before.metadata, identityMetadata, updateMask);
      if (metadata === undefined) return metadataToProto(before);
      const row = await tx.table(identityKind).update(caller.uid, { metadata }, startMs);
      return metadataToProto(row ?? before);
    },
  };
  const service = serve(IdentitiesService, handlers, {
    getIdentity: { ownIdentity: true },
    createIdentity: { body: bodies.created },
    updateIdentity: { body: bodies.updated, ownIdentity: true },
    deleteIdentity: { body: bodies.deleted },
    // Metadata that only its person sees.
    updateIdentityMetadata: { body: "none" },
  });
  return { ...service, formerPaths };
}

type StoredRelationship = Pick<IdentityRow, "relation" | "relationship">;
type Members = Partial<Record<NonNullable<Relationship["case"]>, unknown>>;
/** A mutable field has a column of its name, or this does not compile; the members of the relationship share one. */
type Columns = Pick<IdentityRow, Exclude<keyof typeof identities.mutable, keyof Members>>;

function separateMembers<V extends Partial<Columns>>(values: V) {
  const isMember = ([name]: [string, unknown]) => name in relationTypes;
  const entries = Object.entries(values);
  return {
    columns: Object.fromEntries(entries.filter((entry) => !isMember(entry))) as Pick<V, keyof V & keyof Columns>,
    members: Object.fromEntries(entries.filter(isMember)) as Members,
  };
}

function buildRelationship(
  relationship: Relationship | undefined,
  nowMs: number,
  trustedIssuers: readonly string[],
): StoredRelationship {
  if (relationship?.case === undefined) {
    const members = Object.keys(relationTypes);
    const rule = `must be one of ${members.map(() => "{}").join(", ")}`;
    throw invalidArgument({ field: "relationship", rule, args: members });
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

// Keys expire after a year at the latest.
function withExpiry(keys: Extract<Relationship, { case: "staticKeys" }>["value"], nowMs: number) {
  const latestMs = nowMs + MAX_STATIC_KEY_LIFE_MS;
  const expiresMs = keys.expirationTime ? timestampMs(keys.expirationTime) : latestMs;
  if (expiresMs <= nowMs || expiresMs > latestMs) {
    const rule = "must be in the future and at most 365 days ahead";
    throw invalidArgument({ field: "staticKeys.expirationTime", rule });
  }
  const limited = clone(Identity_StaticKeysSchema, create(Identity_StaticKeysSchema, keys));
  limited.expirationTime = timestampOf(expiresMs);
  return limited;
}

// Returns undefined where nothing changes, times to the second: a stored relationship is not checked again, because it may
// break a rule by now, such as that of keys that have expired.
//
// An identity may change between claim match and AWS account. Static keys and service principals are fixed: a change to or
// from them would be another identity.
//
// `members` has the members of the oneof that the request names: one with a value is the new relationship; one without
// clears the present relationship, which is an error, because every identity has one.
function changeRelationship(
  before: IdentityRow,
  members: Members,
  nowMs: number,
  trustedIssuers: readonly string[],
): StoredRelationship | undefined {
  const kept = identityToProto(before).relationship;
  const [set] = Object.entries(members).filter(([, value]) => value !== undefined && value !== 0);
  const cleared = kept.case !== undefined && kept.case in members && members[kept.case] === undefined;
  const next = set ? ({ case: set[0], value: set[1] } as Relationship) : cleared ? undefined : kept;
  if (next?.case !== undefined && isSame(next, kept)) return undefined;
  const after = buildRelationship(next, nowMs, trustedIssuers);
  const fixed = [relationTypes.staticKeys, relationTypes.servicePrincipal];
  if (after.relation !== before.relation && [after.relation, before.relation].some((one) => fixed.includes(one))) {
    const rule = "cannot change to or from {} and {}";
    throw invalidArgument({ field: "relationship", rule, args: ["staticKeys", "servicePrincipal"] });
  }
  return after;
}

function isSame(a: Relationship, b: Relationship): boolean {
  return isSameMessage(
    IdentitySchema,
    create(IdentitySchema, { relationship: a }),
    create(IdentitySchema, { relationship: b }),
  );
}
