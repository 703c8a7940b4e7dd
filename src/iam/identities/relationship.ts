// The relationship of an identity: it is assumed by matching the claims of a token, by static keys, by an AWS
// account, or as a component of the service.

import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { type Identity, IdentitySchema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { breakRule } from "../../kernel/errors.js";
import type { FieldRule } from "../../pipeline/resource/rules.js";

export type Relationship = Identity["relationship"];

/** The longest life of static keys: 365 days, in milliseconds. */
export const MAX_STATIC_KEY_LIFE_MS = 365 * 24 * 60 * 60 * 1000;

/** The number of the RelationshipType; 0 where there is none. */
export const relationTypes: Readonly<Record<NonNullable<Relationship["case"]>, number>> = {
  claimMatch: 1,
  staticKeys: 2,
  awsIdentity: 3,
  servicePrincipal: 4,
};

/** Converts a relationship to what is stored: the JSON of its message. */
export function relationshipToJson(relationship: Relationship): object {
  return toJson(IdentitySchema, create(IdentitySchema, { relationship })) as JsonObject;
}

/** Reads a stored relationship. */
export function relationshipFromJson(json: object): Relationship {
  return fromJson(IdentitySchema, json as JsonObject, { ignoreUnknownFields: true }).relationship;
}

/** Finds the issuer and subject of the tokens that an identity is assumed by; patterns as they are. */
export function findAssumedClaims(json: object): { issuer: string; subject: string } | undefined {
  const relationship = relationshipFromJson(json);
  switch (relationship.case) {
    case "claimMatch":
      return { issuer: relationship.value.iss.value ?? "", subject: relationship.value.sub.value ?? "" };
    case "staticKeys":
      return { issuer: relationship.value.issuer, subject: relationship.value.subject };
    default:
      return undefined;
  }
}

/** The rule for service principals: one that exists. */
export const isServicePrincipal: FieldRule = (value, field) =>
  value === undefined || value !== 0 ? undefined : breakRule(field, "must name a service principal");
