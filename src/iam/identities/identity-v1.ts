// Identities, version 1: a view of IdentitiesService. The relationships of both versions differ in names alone.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  Identities,
  type Identity,
  type Identity_AWSIdentity,
  type Identity_ClaimMatch,
  IdentitySchema,
} from "#gen/chainguard/platform/iam/identity_pb.js";
import type {
  IdentitiesService,
  Identity as IdentityV2,
  IdentitySchema as IdentityV2Schema,
  Identity_AWSIdentity as V2AwsIdentity,
  Identity_ClaimMatch as V2ClaimMatch,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { defineBodies } from "../../pipeline/body.js";
import { type Handlers, listInChunks } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { findsResource } from "../../pipeline/resource/read.js";
import { createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import { identities, identityToProto } from "./identity.js";

const relationships = ["claim_match", "static_keys", "aws_identity", "service_principal"];
const fullMask = { paths: ["name", "description", ...relationships] };
const names = { uid: "id", parent: "parentId", staticKeys: "static", expirationTime: "expiration" };

const bodies = defineBodies(
  { message: IdentitySchema, readers: [Identities.method.list] },
  findsResource(identities, (row) => toProtoV1(identityToProto(row))),
);

/** Creates Identities of version 1. */
export function identitiesV1(served: ServedService<typeof IdentitiesService>) {
  const v2 = createOperations(served, names);
  const handlers: Handlers<typeof Identities> = {
    create: async ({ parentId, identity }, call) =>
      toProtoV1(await v2.createIdentity({ parent: parentId, identity: fromV1(identity) }, call)),

    update: async (identity, call) =>
      toProtoV1(await v2.updateIdentity({ identity: fromV1(identity), updateMask: fullMask }, call)),

    list: listInChunks(createChunkReader(identities, (row) => toProtoV1(identityToProto(row)))),

    async lookup({ issuer, subject }, call) {
      const { uid } = await v2.lookupIdentity({ issuer, subject }, call);
      return { id: uid };
    },

    delete: ({ id }, call) => v2.deleteIdentity({ uid: id }, call),
  };
  return serve(Identities, handlers, {
    create: { body: bodies.created },
    update: { body: bodies.updated },
    delete: { body: bodies.deleted },
  });
}

type RelationshipV2 = NonNullable<MessageInitShape<typeof IdentityV2Schema>["relationship"]>;
type RelationshipV1 = NonNullable<MessageInitShape<typeof IdentitySchema>["relationship"]>;

// Version 1 leaves out the fields of people.
function toProtoV1(identity: IdentityV2): Identity {
  const { uid, name, description, createTime, updateTime, lastSeenTime, relationship } = identity;
  return create(IdentitySchema, {
    ...{ id: uid, name, description, relationship: relationshipToV1(relationship) },
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
    ...(lastSeenTime && { lastSeen: lastSeenTime }),
  });
}

// The fields that callers set.
function fromV1({ id = "", name = "", description = "", relationship }: Partial<Identity> = {}) {
  return { uid: id, name, description, relationship: relationshipFromV1(relationship ?? { case: undefined }) };
}

function relationshipToV1(relationship: IdentityV2["relationship"]): RelationshipV1 {
  switch (relationship.case) {
    case "claimMatch":
      return { case: "claimMatch", value: copyClaimMatch(relationship.value) };
    case "staticKeys": {
      const { issuer, subject, issuerKeys, expirationTime, audiences } = relationship.value;
      const value = { issuer, subject, issuerKeys, audiences, ...(expirationTime && { expiration: expirationTime }) };
      return { case: "static", value };
    }
    case "awsIdentity":
      return { case: "awsIdentity", value: copyAwsIdentity(relationship.value) };
    case "servicePrincipal":
      // The numbers are the same; names of version 1 lack the prefix.
      return { case: "servicePrincipal", value: relationship.value as number };
    default:
      return { case: undefined };
  }
}

function relationshipFromV1(relationship: Identity["relationship"]): RelationshipV2 {
  switch (relationship.case) {
    case "claimMatch":
      return { case: "claimMatch", value: copyClaimMatch(relationship.value) };
    case "static": {
      const { issuer, subject, issuerKeys, expiration, audiences } = relationship.value;
      const value = { issuer, subject, issuerKeys, audiences, ...(expiration && { expirationTime: expiration }) };
      return { case: "staticKeys", value };
    }
    case "awsIdentity":
      return { case: "awsIdentity", value: copyAwsIdentity(relationship.value) };
    case "servicePrincipal":
      return { case: "servicePrincipal", value: relationship.value as number };
    default:
      return { case: undefined };
  }
}

function copyClaimMatch({ iss, sub, aud, claims, claimPatterns }: Identity_ClaimMatch | V2ClaimMatch) {
  return { iss, sub, aud, claims, claimPatterns };
}

function copyAwsIdentity({ awsAccount, awsArn, awsUserId }: Identity_AWSIdentity | V2AwsIdentity) {
  return { awsAccount, awsArn, awsUserId };
}
