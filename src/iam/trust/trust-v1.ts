// The handlers of TrustService: conditions of identities, and the issuer guard of an organisation.
import { create, equals } from "@bufbuild/protobuf";
import {
  type CreateIdentityResponse,
  type IdentityConditions,
  IdentityConditionsSchema,
  type IssuerGuard,
  IssuerGuardSchema,
  ShutOutIdentity_Reason as Reason,
  TrustService,
} from "#gen/arbor/trust/v1/trust_pb.js";
import type { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { formatBody } from "../../kernel/audit-body.js";
import { type BrokenRule, invalidArgument } from "../../kernel/errors.js";
import { rootOf } from "../../kernel/uidp.js";
import { type BodyView, defineBodies, describeChange } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type Handlers, withOutcome } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { requireContracted } from "../../pipeline/resource/contracted.js";
import { findsResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { groupKind } from "../../store/iam/groups.js";
import { type IdentityRow, identityKind } from "../../store/iam/identities.js";
import type { ListQuery } from "../../store/lists/query.js";
import type { Tx } from "../../store/transaction.js";
import { groups } from "../groups/group.js";
import {
  completeGuard,
  findGuardFault,
  findIssuerGuard,
  findShutOut,
  guardFromRow,
  guardToJson,
  type ShutOut,
} from "../groups/issuer-guard.js";
import {
  conditionsFromJson,
  conditionsToJson,
  findConditionsFault,
  requireConditionsApply,
} from "../identities/conditions.js";
import { identities, identityView } from "../identities/identity.js";
import { findAssumedClaims, relationshipFromJson } from "../identities/relationship.js";
import { requireOwnersRights, requireRightsOf } from "../rights.js";

/** The first version that knows conditions and guards. */
const SINCE = "1.13.0";

const CONDITIONS_UPDATED = "dev.arbor.trust.conditions.updated.v1";

const conditionsView = {
  message: IdentityConditionsSchema,
  readers: [TrustService.method.getConditions],
} as const satisfies BodyView;
const guardView = {
  message: IssuerGuardSchema,
  readers: [TrustService.method.getIssuerGuard],
} as const satisfies BodyView;
const conditionsBodies = defineBodies(conditionsView, findsResource(identities, conditionsToProto));
const guardBodies = defineBodies(guardView, (uid, { tx }) => findIssuerGuard(tx, uid));

const reasons: Readonly<Record<ShutOut, Reason>> = {
  issuer: Reason.ISSUER,
  issuerPattern: Reason.ISSUER_PATTERN,
  relationship: Reason.RELATIONSHIP,
};

/** Creates TrustService beside the service that creates identities. */
export function trustV1(
  served: ServedService<typeof IdentitiesService>,
  { listResources }: Pick<ResourceDeps, "listResources">,
) {
  const iam = createOperations(served);
  const handlers: Handlers<typeof TrustService> = {
    getConditions: async ({ identity }, { tx }) => conditionsToProto(await getRow(tx, identities, identity)),

    async setConditions({ identity, conditions }, call) {
      const before = await getRow(call.tx, identities, identity);
      requireValid(findConditionsFault(conditions, "conditions"), "conditions");
      const after = { ...before, conditions: conditionsToJson(conditions) };
      const shown = conditionsToProto(after);
      if (equals(IdentityConditionsSchema, conditionsToProto(before), shown)) return shown;
      await requireRightsOf(call, identity);
      await storeConditions(after, call);
      return shown;
    },

    async createIdentity({ parent, identity, conditions }, call) {
      requireValid(findConditionsFault(conditions, "conditions"), "conditions");
      const created = await iam.createIdentity({ parent, ...(identity && { identity }) }, call);
      const { uid } = created;
      if (conditions.length > 0) {
        const before = await getRow(call.tx, identities, uid);
        const after = { ...before, conditions: conditionsToJson(conditions) };
        await storeConditions(after, call);
        await appendConditions(after, call);
      }
      return withOutcome({ identity: created, conditions }, { subjectUid: uid });
    },

    async getIssuerGuard({ group }, { tx }) {
      const guard = guardFromRow(await getRow(tx, groups, requireRoot(group)));
      return guard ? { guard } : {};
    },

    async setIssuerGuard({ group, guard }, call) {
      const { tx, caller } = call;
      const root = await getRow(tx, groups, requireRoot(group));
      requireOwnersRights(caller, group);
      const before = guardFromRow(root);
      const after = create(IssuerGuardSchema, { ...readGuard(guard), group });
      if (before !== undefined && equals(IssuerGuardSchema, before, after)) return after;
      await requireContracted(tx, "an issuer guard", SINCE);
      await tx.table(groupKind).update(group, { issuerGuard: guardToJson(after) }, root.updateTimeMs);
      return after;
    },

    async removeIssuerGuard({ group }, { tx, caller }) {
      const root = await getRow(tx, groups, requireRoot(group));
      requireOwnersRights(caller, group);
      if (guardFromRow(root) !== undefined)
        await tx.table(groupKind).update(group, { issuerGuard: {} }, root.updateTimeMs);
      return {};
    },

    async checkIssuerGuard({ group, guard, pageSize, pageToken }, call) {
      const { tx } = call;
      await getRow(tx, groups, requireRoot(group));
      const checked = readGuard(guard);
      const { resources, nextPageToken } = await listResources(
        call,
        identities,
        { pageSize, pageToken, orderBy: "uid", skip: 0 },
        (row) => describeShutOut(checked, row),
        {
          method: `CheckIssuerGuard ${group} ${JSON.stringify(guardToJson(checked))}`,
          visible: [group],
          readPage: (query) => readShutOut(query, tx, checked),
        },
      );
      return { identities: resources, nextPageToken };
    },
  };
  return serve(TrustService, handlers, {
    setConditions: { body: conditionsBodies.updated },
    createIdentity: {
      body: { view: identityView, shown: ({ identity }: CreateIdentityResponse) => identity },
    },
    setIssuerGuard: { body: guardBodies.updated },
    removeIssuerGuard: { body: guardBodies.deleted },
  });
}

function conditionsToProto({ uid, conditions }: Pick<IdentityRow, "uid" | "conditions">): IdentityConditions {
  return create(IdentityConditionsSchema, { identity: uid, conditions: conditionsFromJson(conditions) });
}

async function storeConditions(after: IdentityRow, { tx, startMs }: UnaryCall): Promise<void> {
  const { uid, conditions } = after;
  requireConditionsApply(after);
  if (conditions.length > 0) await requireContracted(tx, "conditions of an identity", SINCE);
  await tx.table(identityKind).update(uid, { conditions }, startMs);
}

// For the audit log, whose row of the creation has what the published API shows of the identity.
async function appendConditions(after: IdentityRow, call: UnaryCall): Promise<void> {
  const { tx, startMs: timeMs, method, caller, requestId, traceId, inbound } = call;
  const { uid: subjectUid } = after;
  const change = describeChange(conditionsView, { after: conditionsToProto(after) });
  await tx.audit.append({
    ...{ rootUid: rootOf(subjectUid), timeMs, type: CONDITIONS_UPDATED, subjectUid, requestId, traceId },
    method: `/${method.parent.typeName}/${method.name}`,
    actorUid: caller.uid,
    tokenId: caller.principal.tokenId,
    remoteAddress: inbound.remoteAddress ?? "",
    body: formatBody(change, CONDITIONS_UPDATED),
  });
}

function requireValid(broken: BrokenRule | undefined, field: string): void {
  if (broken !== undefined) throw invalidArgument({ ...broken, field });
}

function readGuard(guard: IssuerGuard | undefined): IssuerGuard {
  if (guard === undefined) throw invalidArgument({ field: "guard", rule: "is required" });
  const complete = completeGuard(guard);
  requireValid(findGuardFault(complete, "guard"), "guard");
  return complete;
}

function requireRoot(group: string): string {
  if (rootOf(group) !== group) throw invalidArgument({ field: "group", rule: "must be the uid of a root group" });
  return group;
}

// Pages may have fewer rows than their limit: a page of identities is read, and those that are shut out are shown.
async function readShutOut(query: ListQuery, tx: Tx, guard: IssuerGuard) {
  const page = await tx.table(identityKind).list(query);
  return { ...page, rows: page.rows.filter((row) => findShutOut(guard, relationshipOf(row)) !== undefined) };
}

function describeShutOut(guard: IssuerGuard, row: IdentityRow) {
  const reason = findShutOut(guard, relationshipOf(row));
  return {
    uid: row.uid,
    name: row.name,
    issuer: findAssumedClaims(row.relationship)?.issuer ?? "",
    reason: reason === undefined ? Reason.UNSPECIFIED : reasons[reason],
  };
}

function relationshipOf({ relationship }: IdentityRow) {
  return relationshipFromJson(relationship);
}
