// The relationship of an identity: it is assumed by matching the claims of a token, by static keys, by an AWS
// account, or as a component of the service.

import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import {
  type Identity,
  type Identity_AWSIdentity,
  type Identity_ClaimMatch,
  type Identity_StaticKeys,
  IdentitySchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { type BrokenRule, breakRule } from "../../kernel/errors.js";
import { loadRe2 } from "../../kernel/re2.js";
import { type FieldRule, isIssuerUrl, isPrintable } from "../../pipeline/resource/rules.js";

export type Relationship = Identity["relationship"];

/** The longest life of static keys: 365 days, in milliseconds. */
export const MAX_STATIC_KEY_LIFE_MS = 365 * 24 * 60 * 60 * 1000;
const MAX_TEXT = 1_024;
const MAX_PATTERN = 512;
/**
 * The largest program of a pattern, in instructions of RE2; a usual one has about 50. Time and memory to
 * compile a pattern grow with its program, and nested repetitions multiply it.
 */
export const MAX_PROGRAM = 1_000;
/** The same for patterns of issuers, which are matched before a signature is verified. */
const MAX_ISSUER_PROGRAM = 300;
/** The same for all patterns of one identity together. */
export const MAX_PROGRAMS = 2_000;
const MAX_CLAIMS = 32;
const MAX_KEYS_LENGTH = 64 * 1024;
const MAX_STATIC_KEYS = 32;
/** The largest number of values in a JWK Set of an identity, nested ones included, counted by commas and brackets. */
export const MAX_STATIC_KEY_VALUES = 1_024;
const MAX_ISSUER_LENGTH = 255;

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

/** The rule for claim matches: literal or pattern for issuer and subject, patterns in RE2 with a literal host. */
export const isClaimMatch: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { iss, sub, aud, claims, claimPatterns } = value as Identity_ClaimMatch;
  return (
    (iss.case === undefined ? breakRule(field, "must have {} or {}", "issuer", "issuerPattern") : undefined) ??
    (sub.case === undefined ? breakRule(field, "must have {} or {}", "subject", "subjectPattern") : undefined) ??
    (iss.case === "issuer" ? findIssuerFault(iss.value, `${field}.issuer`) : undefined) ??
    (iss.case === "issuerPattern" ? findIssuerPatternFault(iss.value, `${field}.issuerPattern`) : undefined) ??
    (sub.case === "subject" ? findTextFault(sub.value, `${field}.subject`) : undefined) ??
    (sub.case === "subjectPattern" ? findPatternFault(sub.value, `${field}.subjectPattern`) : undefined) ??
    (aud.case === "audience" ? findTextFault(aud.value, `${field}.audience`) : undefined) ??
    (aud.case === "audiencePattern" ? findPatternFault(aud.value, `${field}.audiencePattern`) : undefined) ??
    findClaimsFault(claims, `${field}.claims`, findTextFault) ??
    findClaimsFault(claimPatterns, `${field}.claimPatterns`, findPatternFault) ??
    findProgramsFault(value as Identity_ClaimMatch, field) ??
    // Such a pattern usually admits every subject of a public issuer by mistake.
    (sub.case === "subjectPattern" &&
    Object.keys({ ...claims, ...claimPatterns }).length === 0 &&
    loadRe2().matches(sub.value, "")
      ? breakRule(
          `${field}.subjectPattern`,
          "must not match the empty text unless claims say more; .+ stands for any subject",
        )
      : undefined)
  );
};

/** The rule for static keys: issuer, subject and keys; one audience at most. */
export const areStaticKeys: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { issuer, subject, issuerKeys, audiences } = value as Identity_StaticKeys;
  if (issuerKeys === "") return breakRule(`${field}.issuerKeys`, "is required");
  if (issuerKeys.length > MAX_KEYS_LENGTH) return breakRule(`${field}.issuerKeys`, "must hold keys, at most 64 KiB");
  if (audiences.length > 1) return breakRule(`${field}.audiences`, "must be at most one");
  if (issuer.length > MAX_ISSUER_LENGTH)
    return breakRule(`${field}.issuer`, `must be 1 to ${MAX_ISSUER_LENGTH} characters`);
  return (
    findTextFault(issuer, `${field}.issuer`) ??
    findTextFault(subject, `${field}.subject`) ??
    findKeySetFault(issuerKeys, `${field}.issuerKeys`) ??
    audiences.map((one) => findTextFault(one, `${field}.audiences`)).find((fault) => fault !== undefined)
  );
};

/** The rule for AWS identities: a 12-digit account, and a literal or a pattern for ARN and for user id. */
export const isAwsIdentity: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { awsAccount, awsArn, awsUserId } = value as Identity_AWSIdentity;
  if (!/^[0-9]{12}$/.test(awsAccount)) return breakRule(`${field}.awsAccount`, "must be 12 digits");
  if (awsArn.case === undefined) return breakRule(field, "must have {} or {}", "arn", "arnPattern");
  if (awsUserId.case === undefined) return breakRule(field, "must have {} or {}", "userId", "userIdPattern");
  return (
    (awsArn.case === "arn" ? findTextFault : findPatternFault)(awsArn.value, `${field}.${awsArn.case}`) ??
    (awsUserId.case === "userId" ? findTextFault : findPatternFault)(awsUserId.value, `${field}.${awsUserId.case}`)
  );
};

/** The rule for service principals: one that exists. */
export const isServicePrincipal: FieldRule = (value, field) =>
  value === undefined || value !== 0 ? undefined : breakRule(field, "must name a service principal");

type Fault = (text: string, field: string) => BrokenRule | undefined;

export const findTextFault: Fault = (text, field) => {
  if (text === "" || text.length > MAX_TEXT) return breakRule(field, `must be 1 to ${MAX_TEXT} characters`);
  return isPrintable(text) ? undefined : breakRule(field, "must not contain control characters");
};

const findIssuerFault: Fault = (text, field) =>
  isIssuerUrl(text) ? undefined : breakRule(field, "must be an https URL without user, query or fragment");

// RE2 does not backtrack, so no pattern makes a match slow. The pattern is compiled alone, so that it cannot
// close the group that matching wraps it in.
export const findPatternFault: Fault = (text, field) => {
  if (text === "" || text.length > MAX_PATTERN) return breakRule(field, `must be 1 to ${MAX_PATTERN} characters`);
  try {
    loadRe2().compile(text);
    return measureProgram(text) > MAX_PROGRAM
      ? breakRule(field, `must be a smaller regular expression: at most ${MAX_PROGRAM} steps of RE2`)
      : undefined;
  } catch {
    return breakRule(field, "must be a regular expression in RE2 syntax");
  }
};

export function measureProgram(pattern: string): number {
  return loadRe2().compile(`^(?:${pattern})$`).programSize();
}

function findProgramsFault({ sub, aud, claimPatterns }: Identity_ClaimMatch, field: string): BrokenRule | undefined {
  const patterns = Object.values(claimPatterns);
  if (sub.case === "subjectPattern") patterns.push(sub.value);
  if (aud.case === "audiencePattern") patterns.push(aud.value);
  const size = patterns.reduce((sum, pattern) => sum + measureProgram(pattern), 0);
  return size > MAX_PROGRAMS
    ? breakRule(field, `must have smaller regular expressions: at most ${MAX_PROGRAMS} steps of RE2 in all`)
    : undefined;
}

// Published clients send any text, so only a JWK Set is limited in size.
function findKeySetFault(text: string, field: string): BrokenRule | undefined {
  let jwks: unknown;
  try {
    jwks = JSON.parse(text);
  } catch {
    return undefined;
  }
  const keys: unknown = typeof jwks === "object" && jwks !== null && "keys" in jwks ? jwks.keys : undefined;
  if (Array.isArray(keys) && keys.length > MAX_STATIC_KEYS)
    return breakRule(field, `must hold at most ${MAX_STATIC_KEYS} keys`);
  const values = text.match(/[,[{]/g)?.length ?? 0;
  return values >= MAX_STATIC_KEY_VALUES
    ? breakRule(field, `must hold at most ${MAX_STATIC_KEY_VALUES} values, those within keys included`)
    : undefined;
}

// The host decides whose keys are trusted and where they are fetched. So the literal prefix of the pattern, as
// RE2 computes it, must contain the host and the slash after it, or be the whole pattern.
const findIssuerPatternFault: Fault = (text, field) => {
  const broken = findPatternFault(text, field);
  if (broken) return broken;
  if (measureProgram(text) > MAX_ISSUER_PROGRAM)
    return breakRule(field, `must be a smaller regular expression: at most ${MAX_ISSUER_PROGRAM} steps of RE2`);
  const { prefix, isWhole } = findLiteralPrefix(withoutAnchors(text));
  const host = /^https:\/\/[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]{1,5})?(\/|$)/.exec(prefix);
  return host && (host[1] === "/" || isWhole)
    ? undefined
    : breakRule(field, "must begin with https:// and a literal host, its dots escaped");
};

// Patterns must match the whole text, so a ^ at the start and a $ at the end are redundant. An escaped $ is not.
function withoutAnchors(pattern: string): string {
  const start = pattern.startsWith("^") ? 1 : 0;
  const isAnchored = /(?<!\\)(?:\\\\)*\$$/.test(pattern);
  return pattern.slice(start, isAnchored ? -1 : undefined);
}

function findLiteralPrefix(pattern: string): { readonly prefix: string; readonly isWhole: boolean } {
  try {
    const { prefix, prefixComplete } = loadRe2().compile(pattern).re2();
    return { prefix: String(prefix), isWhole: Boolean(prefixComplete) };
  } catch {
    // An anchor that was repeated leaves nothing to repeat.
    return { prefix: "", isWhole: false };
  }
}

function findClaimsFault(
  claims: Readonly<Record<string, string>>,
  field: string,
  fault: Fault,
): BrokenRule | undefined {
  const entries = Object.entries(claims);
  if (entries.length > MAX_CLAIMS) return breakRule(field, `must be at most ${MAX_CLAIMS}`);
  for (const [name, text] of entries) {
    const broken = findTextFault(name, `${field} keys`) ?? fault(text, `${field}.${name}`);
    if (broken) return broken;
  }
  return undefined;
}
