// What an identity is: its fields and their rules, and how it shows in version 2.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Identity, IdentitySchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { isDescription, isName } from "../../pipeline/resource/rules.js";
import type { IdentityRow } from "../../store/port.js";
import {
  areStaticKeys,
  isAwsIdentity,
  isClaimMatch,
  isServicePrincipal,
  relationshipFromJson,
} from "./relationship.js";

/** The identity resource. */
export const identities = defineResource({
  noun: "identity",
  type: "iam.chainguard.dev/Identity",
  message: IdentitySchema,
  sort: ["uid", "name", "created_at", "updated_at"],
  mutable: {
    name: isName,
    description: isDescription,
    company: isDescription,
    claimMatch: isClaimMatch,
    staticKeys: areStaticKeys,
    awsIdentity: isAwsIdentity,
    servicePrincipal: isServicePrincipal,
  },
});

/** A stored identity as version 2 shows it. */
export function identityView(row: IdentityRow): Identity {
  return create(IdentitySchema, {
    uid: row.uid,
    name: row.name,
    description: row.description,
    email: row.email,
    emailUnverified: row.emailUnverified,
    company: row.company,
    lastSeenTime: timestampFromMs(row.lastSeenTimeMs),
    createTime: timestampFromMs(row.createTimeMs),
    updateTime: timestampFromMs(row.updateTimeMs),
    relationship: relationshipFromJson(row.relationship),
  });
}
