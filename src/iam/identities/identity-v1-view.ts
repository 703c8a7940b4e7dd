// Identities as version 1 speaks of them. The ways to assume one are those of
// version 2, by partly other names.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type Identity,
  type Identity_AWSIdentity,
  type Identity_ClaimMatch,
  IdentitySchema,
} from "#gen/chainguard/platform/iam/identity_pb.js";
import type {
  Identity as IdentityV2,
  IdentitySchema as IdentityV2Schema,
  Identity_AWSIdentity as V2AwsIdentity,
  Identity_ClaimMatch as V2ClaimMatch,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";

type Sent = NonNullable<MessageInitShape<typeof IdentityV2Schema>["relationship"]>;
type Shown = NonNullable<MessageInitShape<typeof IdentitySchema>["relationship"]>;

/** An identity of version 2 as version 1 shows it: without what is known of people alone. */
export function identityV1(identity: IdentityV2): Identity {
  const { uid, name, description, createTime, updateTime, lastSeenTime, relationship } = identity;
  return create(IdentitySchema, {
    ...{ id: uid, name, description, relationship: shown(relationship) },
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
    ...(lastSeenTime && { lastSeen: lastSeenTime }),
  });
}

/** What version 1 sends of an identity, as version 2 takes it; the rest is not the caller's to set. */
export function identitySent({ id = "", name = "", description = "", relationship }: Partial<Identity> = {}) {
  return { uid: id, name, description, relationship: sent(relationship ?? { case: undefined }) };
}

function shown(relationship: IdentityV2["relationship"]): Shown {
  switch (relationship.case) {
    case "claimMatch":
      return { case: "claimMatch", value: claimMatchOf(relationship.value) };
    case "staticKeys": {
      const { issuer, subject, issuerKeys, expirationTime, audiences } = relationship.value;
      const value = { issuer, subject, issuerKeys, audiences, ...(expirationTime && { expiration: expirationTime }) };
      return { case: "static", value };
    }
    case "awsIdentity":
      return { case: "awsIdentity", value: awsIdentityOf(relationship.value) };
    case "servicePrincipal":
      return { case: "servicePrincipal", value: principalOf(relationship.value) };
    default:
      return { case: undefined };
  }
}

function sent(relationship: Identity["relationship"]): Sent {
  switch (relationship.case) {
    case "claimMatch":
      return { case: "claimMatch", value: claimMatchOf(relationship.value) };
    case "static": {
      const { issuer, subject, issuerKeys, expiration, audiences } = relationship.value;
      const value = { issuer, subject, issuerKeys, audiences, ...(expiration && { expirationTime: expiration }) };
      return { case: "staticKeys", value };
    }
    case "awsIdentity":
      return { case: "awsIdentity", value: awsIdentityOf(relationship.value) };
    case "servicePrincipal":
      return { case: "servicePrincipal", value: principalOf(relationship.value) };
    default:
      return { case: undefined };
  }
}

function claimMatchOf({ iss, sub, aud, claims, claimPatterns }: Identity_ClaimMatch | V2ClaimMatch) {
  return { iss, sub, aud, claims, claimPatterns };
}

function awsIdentityOf({ awsAccount, awsArn, awsUserId }: Identity_AWSIdentity | V2AwsIdentity) {
  return { awsAccount, awsArn, awsUserId };
}

// The numbers are the same; names of version 1 lack the prefix.
function principalOf(principal: number): number {
  return principal;
}
