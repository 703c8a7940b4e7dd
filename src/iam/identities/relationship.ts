// How an identity is assumed: by matching claims of a token, by keys it brings,
// by an AWS account, or as a component of the service.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { RE2JS } from "re2js";
import {
  type Identity,
  type Identity_AWSIdentity,
  type Identity_ClaimMatch,
  type Identity_StaticKeys,
  IdentitySchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { type FieldRule, isPrintable } from "../../resource/rules.js";
import { isIssuerUrl } from "../issuer-url.js";

/** The relationship of an identity, as its message keeps it. */
export type Relationship = Identity["relationship"];

/** Static keys are good for at most this long: 365 days, in milliseconds. */
export const MAX_STATIC_KEY_LIFE_MS = 365 * 24 * 60 * 60 * 1000;
const MAX_TEXT = 1_024;
const MAX_PATTERN = 512;
/**
 * How large the program of a pattern may be, in instructions of RE2; usual ones have about 50. A match
 * takes time in proportion to program and text, at most some 50 ms, and repetitions within repetitions
 * multiply.
 */
export const MAX_PROGRAM = 1_000;
const MAX_CLAIMS = 32;
const MAX_KEYS_LENGTH = 64 * 1024;

/** The number of the RelationshipType; 0 where there is none. */
export const relationTypes: Readonly<Record<NonNullable<Relationship["case"]>, number>> = {
  claimMatch: 1,
  staticKeys: 2,
  awsIdentity: 3,
  servicePrincipal: 4,
};

/** A relationship as it is stored: the JSON of its message. */
export function relationshipToJson(relationship: Relationship): object {
  return toJson(IdentitySchema, create(IdentitySchema, { relationship })) as JsonObject;
}

/** A relationship as it was stored. */
export function relationshipFromJson(json: object): Relationship {
  return fromJson(IdentitySchema, json as JsonObject, { ignoreUnknownFields: true }).relationship;
}

/** The issuer and subject that an identity stands for, patterns as they are; undefined where it has none. */
export function assumedBy(json: object): { issuer: string; subject: string } | undefined {
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

/** The rule for claim matches: literal or pattern for issuer and subject, patterns in RE2 with a literal host. */
export const isClaimMatch: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { iss, sub, aud, claims, claimPatterns } = value as Identity_ClaimMatch;
  return (
    (iss.case === undefined ? `${field} must have issuer or issuerPattern` : undefined) ??
    (sub.case === undefined ? `${field} must have subject or subjectPattern` : undefined) ??
    (iss.case === "issuer" ? issuerFault(iss.value, `${field}.issuer`) : undefined) ??
    (iss.case === "issuerPattern" ? issuerPatternFault(iss.value, `${field}.issuerPattern`) : undefined) ??
    (sub.case === "subject" ? textFault(sub.value, `${field}.subject`) : undefined) ??
    (sub.case === "subjectPattern" ? patternFault(sub.value, `${field}.subjectPattern`) : undefined) ??
    (aud.case === "audience" ? textFault(aud.value, `${field}.audience`) : undefined) ??
    (aud.case === "audiencePattern" ? patternFault(aud.value, `${field}.audiencePattern`) : undefined) ??
    claimsFault(claims, `${field}.claims`, textFault) ??
    claimsFault(claimPatterns, `${field}.claimPatterns`, patternFault) ??
    // The usual way to let in everybody of a public issuer without meaning to.
    (sub.case === "subjectPattern" &&
    Object.keys({ ...claims, ...claimPatterns }).length === 0 &&
    RE2JS.matches(sub.value, "")
      ? `${field}.subjectPattern must not match the empty text unless claims say more; .+ stands for any subject`
      : undefined)
  );
};

/** The rule for static keys: issuer, subject and keys; one audience at most. */
export const areStaticKeys: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { issuer, subject, issuerKeys, audiences } = value as Identity_StaticKeys;
  if (issuerKeys === "" || issuerKeys.length > MAX_KEYS_LENGTH)
    return `${field}.issuerKeys must hold keys, at most 64 KiB`;
  if (audiences.length > 1) return `${field}.audiences must be at most one`;
  return (
    textFault(issuer, `${field}.issuer`) ??
    textFault(subject, `${field}.subject`) ??
    audiences.map((one) => textFault(one, `${field}.audiences`)).find((fault) => fault !== undefined)
  );
};

/** The rule for AWS identities: a 12-digit account, and a literal or a pattern for ARN and for user id. */
export const isAwsIdentity: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { awsAccount, awsArn, awsUserId } = value as Identity_AWSIdentity;
  if (!/^[0-9]{12}$/.test(awsAccount)) return `${field}.awsAccount must be 12 digits`;
  if (awsArn.case === undefined) return `${field} must have arn or arnPattern`;
  if (awsUserId.case === undefined) return `${field} must have userId or userIdPattern`;
  return (
    (awsArn.case === "arn" ? textFault : patternFault)(awsArn.value, `${field}.${awsArn.case}`) ??
    (awsUserId.case === "userId" ? textFault : patternFault)(awsUserId.value, `${field}.${awsUserId.case}`)
  );
};

/** The rule for service principals: one that exists. */
export const isServicePrincipal: FieldRule = (value, field) =>
  value === undefined || value !== 0 ? undefined : `${field} must name a service principal`;

type Fault = (text: string, field: string) => string | undefined;

const textFault: Fault = (text, field) => {
  if (text === "" || text.length > MAX_TEXT) return `${field} must be 1 to ${MAX_TEXT} characters`;
  return isPrintable(text) ? undefined : `${field} must not contain control characters`;
};

const issuerFault: Fault = (text, field) =>
  isIssuerUrl(text) ? undefined : `${field} must be an https URL without user, query or fragment`;

// RE2 knows no backtracking: no pattern can make a match slow. A pattern must
// be one by itself, so that none closes the group that matching puts it in.
const patternFault: Fault = (text, field) => {
  if (text === "" || text.length > MAX_PATTERN) return `${field} must be 1 to ${MAX_PATTERN} characters`;
  try {
    RE2JS.compile(text);
    const size = RE2JS.compile(`^(?:${text})$`).programSize();
    return size > MAX_PROGRAM
      ? `${field} must be a smaller regular expression: at most ${MAX_PROGRAM} steps of RE2`
      : undefined;
  } catch {
    return `${field} must be a regular expression in RE2 syntax`;
  }
};

// The host decides whose keys are trusted, and which hosts are ever asked for
// them. So what every match begins with, as the engine itself works it out, must
// hold the host and the slash that ends it, or be the whole pattern.
const issuerPatternFault: Fault = (text, field) => {
  const broken = patternFault(text, field);
  if (broken) return broken;
  const { prefix, prefixComplete } = RE2JS.compile(text).re2();
  const host = /^https:\/\/[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]{1,5})?(\/|$)/.exec(String(prefix));
  return host && (host[1] === "/" || prefixComplete)
    ? undefined
    : `${field} must begin with https:// and a literal host, its dots escaped`;
};

function claimsFault(claims: Readonly<Record<string, string>>, field: string, fault: Fault): string | undefined {
  const entries = Object.entries(claims);
  if (entries.length > MAX_CLAIMS) return `${field} must be at most ${MAX_CLAIMS}`;
  for (const [name, text] of entries) {
    const broken = textFault(name, `${field} keys`) ?? fault(text, `${field}.${name}`);
    if (broken) return broken;
  }
  return undefined;
}
