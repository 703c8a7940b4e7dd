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
import { type FieldRule, isPrintable } from "../../pipeline/resource/rules.js";
import { isIssuerUrl } from "../issuer-url.js";

/** The relationship of an identity, as its message keeps it. */
export type Relationship = Identity["relationship"];

/** Static keys are good for at most this long: 365 days, in milliseconds. */
export const MAX_STATIC_KEY_LIFE_MS = 365 * 24 * 60 * 60 * 1000;
const MAX_TEXT = 1_024;
const MAX_PATTERN = 512;
/**
 * How large the program of a pattern may be, in instructions of RE2; usual ones have about 50. Time and
 * memory to compile it grow with that, and repetitions within repetitions multiply.
 */
export const MAX_PROGRAM = 1_000;
/** The same for patterns of issuers, which are held against text that nobody has signed yet. */
const MAX_ISSUER_PROGRAM = 300;
/** The same for all patterns of one identity together. */
const MAX_PROGRAMS = 2_000;
const MAX_CLAIMS = 32;
const MAX_KEYS_LENGTH = 64 * 1024;
const MAX_STATIC_KEYS = 32;
/** How many values a JWK Set on an identity may hold, nested ones included, counted by commas and brackets. */
export const MAX_STATIC_KEY_VALUES = 1_024;
const MAX_ISSUER_LENGTH = 255;

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
    programsFault(value as Identity_ClaimMatch, field) ??
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
  if (issuer.length > MAX_ISSUER_LENGTH) return `${field}.issuer must be 1 to ${MAX_ISSUER_LENGTH} characters`;
  return (
    textFault(issuer, `${field}.issuer`) ??
    textFault(subject, `${field}.subject`) ??
    keySetFault(issuerKeys, `${field}.issuerKeys`) ??
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
    return programSizeOf(text) > MAX_PROGRAM
      ? `${field} must be a smaller regular expression: at most ${MAX_PROGRAM} steps of RE2`
      : undefined;
  } catch {
    return `${field} must be a regular expression in RE2 syntax`;
  }
};

function programSizeOf(pattern: string): number {
  return RE2JS.compile(`^(?:${pattern})$`).programSize();
}

function programsFault({ sub, aud, claimPatterns }: Identity_ClaimMatch, field: string): string | undefined {
  const patterns = Object.values(claimPatterns);
  if (sub.case === "subjectPattern") patterns.push(sub.value);
  if (aud.case === "audiencePattern") patterns.push(aud.value);
  const size = patterns.reduce((sum, pattern) => sum + programSizeOf(pattern), 0);
  return size > MAX_PROGRAMS
    ? `${field} must have smaller regular expressions: at most ${MAX_PROGRAMS} steps of RE2 in all`
    : undefined;
}

// Any text is taken, as published clients expect, but one that is a JWK Set must be one of a usual size.
function keySetFault(text: string, field: string): string | undefined {
  let jwks: unknown;
  try {
    jwks = JSON.parse(text);
  } catch {
    return undefined;
  }
  const keys: unknown = typeof jwks === "object" && jwks !== null && "keys" in jwks ? jwks.keys : undefined;
  if (Array.isArray(keys) && keys.length > MAX_STATIC_KEYS) return `${field} must hold at most ${MAX_STATIC_KEYS} keys`;
  const values = text.match(/[,[{]/g)?.length ?? 0;
  return values >= MAX_STATIC_KEY_VALUES
    ? `${field} must hold at most ${MAX_STATIC_KEY_VALUES} values, those within keys included`
    : undefined;
}

// The host decides whose keys are trusted, and which hosts are ever asked for
// them. So what every match begins with, as the engine itself works it out, must
// hold the host and the slash that ends it, or be the whole pattern.
const issuerPatternFault: Fault = (text, field) => {
  const broken = patternFault(text, field);
  if (broken) return broken;
  if (programSizeOf(text) > MAX_ISSUER_PROGRAM)
    return `${field} must be a smaller regular expression: at most ${MAX_ISSUER_PROGRAM} steps of RE2`;
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
