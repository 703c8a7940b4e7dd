// The rules for which tokens assume an identity: claim matches, static keys, AWS identities, conditions and issuer guards. The
// service applies them to requests, and the command line to files before it sends any request. The types have the shape of the
// messages of the API.
import type { ClaimCondition, ClaimValue } from "./claim-condition.js";
import { formatCondition } from "./claim-condition.js";
import { type BrokenRule, breakRule } from "./errors.js";
import { type FieldRule, isIssuerUrl, isPrintable } from "./field-rules.js";
import { loadRe2 } from "./re2.js";

type OneOf<Name extends string> =
  | { readonly case: Name; readonly value: string }
  | { readonly case: undefined; readonly value?: undefined };

interface ClaimMatch {
  readonly iss: OneOf<"issuer" | "issuerPattern">;
  readonly sub: OneOf<"subject" | "subjectPattern">;
  readonly aud: OneOf<"audience" | "audiencePattern">;
  readonly claims: Readonly<Record<string, string>>;
  readonly claimPatterns: Readonly<Record<string, string>>;
}

interface StaticKeys {
  readonly issuer: string;
  readonly subject: string;
  readonly issuerKeys: string;
  readonly audiences: readonly string[];
}

interface AwsIdentity {
  readonly awsAccount: string;
  readonly awsArn: OneOf<"arn" | "arnPattern">;
  readonly awsUserId: OneOf<"userId" | "userIdPattern">;
}

interface AllowedIssuer {
  readonly allowed: OneOf<"issuer" | "origin">;
  readonly conditions: readonly ClaimCondition[];
}

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
const MAX_CONDITIONS = 32;
const MAX_VALUES = 64;
const MAX_KEYS = 10;
const MAX_KEY = 255;
const MAX_ISSUERS = 50;

/** The rule for claim matches: literal or pattern for issuer and subject, patterns in RE2 with a literal host. */
export const isClaimMatch: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { iss, sub, aud, claims, claimPatterns } = value as ClaimMatch;
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
    findProgramsFault(value as ClaimMatch, field) ??
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
  const { issuer, subject, issuerKeys, audiences } = value as StaticKeys;
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
  const { awsAccount, awsArn, awsUserId } = value as AwsIdentity;
  if (!/^[0-9]{12}$/.test(awsAccount)) return breakRule(`${field}.awsAccount`, "must be 12 digits");
  if (awsArn.case === undefined) return breakRule(field, "must have {} or {}", "arn", "arnPattern");
  if (awsUserId.case === undefined) return breakRule(field, "must have {} or {}", "userId", "userIdPattern");
  return (
    (awsArn.case === "arn" ? findTextFault : findPatternFault)(awsArn.value, `${field}.${awsArn.case}`) ??
    (awsUserId.case === "userId" ? findTextFault : findPatternFault)(awsUserId.value, `${field}.${awsUserId.case}`)
  );
};

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

function findProgramsFault({ sub, aud, claimPatterns }: ClaimMatch, field: string): BrokenRule | undefined {
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

/** Finds the rule that a list of conditions breaks; undefined for a valid one. Its size in bytes has a limit besides. */
export function findConditionListFault(conditions: readonly ClaimCondition[], field: string): BrokenRule | undefined {
  if (conditions.length > MAX_CONDITIONS) return breakRule(field, `must be at most ${MAX_CONDITIONS}`);
  for (const [i, condition] of conditions.entries()) {
    const broken = findConditionFault(condition, `${field}[${i}]`);
    if (broken !== undefined) return broken;
  }
  const values = conditions.reduce((sum, condition) => sum + valuesOf(condition).length, 0);
  if (values > MAX_VALUES) return breakRule(field, `must have at most ${MAX_VALUES} values in all`);
  const texts = conditions.map((condition) => formatCondition(condition));
  if (new Set(texts).size < texts.length) return breakRule(field, "must not repeat a condition");
  return findConditionProgramsFault(conditions, field);
}

/** Finds whether the patterns of conditions are too large together. */
export function findConditionProgramsFault(
  conditions: readonly ClaimCondition[],
  field: string,
): BrokenRule | undefined {
  const patterns = conditions.flatMap(({ test }) => (test.case === "pattern" ? [test.value] : []));
  const size = patterns.reduce((sum, pattern) => sum + measureProgram(pattern), 0);
  return size > MAX_PROGRAMS
    ? breakRule(field, `must have smaller regular expressions: at most ${MAX_PROGRAMS} steps of RE2 in all`)
    : undefined;
}

function findConditionFault(condition: ClaimCondition, field: string): BrokenRule | undefined {
  const { path, test } = condition;
  if (path.length === 0 || path.length > MAX_KEYS) return breakRule(`${field}.path`, `must be 1 to ${MAX_KEYS} keys`);
  for (const key of path) {
    if (key === "" || key.length > MAX_KEY || !isPrintable(key))
      return breakRule(`${field}.path`, `must have keys of 1 to ${MAX_KEY} characters without control characters`);
  }
  switch (test.case) {
    case undefined:
      return breakRule(field, "must have one of {}", "equals, oneOf, prefix, pattern, contains, exists");
    case "exists":
      return test.value ? undefined : breakRule(`${field}.exists`, "must be true: use negated for a missing claim");
    case "prefix":
      return findTextFault(test.value, `${field}.prefix`);
    case "pattern":
      return findPatternFault(test.value, `${field}.pattern`);
    default:
      return findValuesFault(valuesOf(condition), `${field}.${test.case}`);
  }
}

function findValuesFault(values: readonly ClaimValue[], field: string): BrokenRule | undefined {
  if (values.length === 0) return breakRule(field, "must have a value");
  if (new Set(values.map(({ kind }) => kind.case)).size > 1) return breakRule(field, "must have values of one type");
  for (const { kind } of values) {
    const broken = findValueFault(kind, field);
    if (broken !== undefined) return broken;
  }
  return undefined;
}

function findValueFault(kind: ClaimValue["kind"], field: string): BrokenRule | undefined {
  if (kind.case === undefined) return breakRule(field, "must be a text, a whole number or a boolean");
  if (kind.case === "stringValue") return findTextFault(String(kind.value), field);
  if (kind.case === "intValue" && !Number.isSafeInteger(Number(kind.value)))
    return breakRule(field, "must be a whole number from -(2^53 - 1) to 2^53 - 1");
  return undefined;
}

function valuesOf({ test }: ClaimCondition): readonly ClaimValue[] {
  switch (test.case) {
    case "equals":
    case "contains":
      return [test.value];
    case "oneOf":
      return test.value.values;
    default:
      return [];
  }
}

/**
 * Finds the rule that the issuers of a guard break; undefined for valid ones.
 *
 * @param findFault finds the rule that the conditions of an issuer break
 */
export function findIssuersFault<T extends AllowedIssuer>(
  issuers: readonly T[],
  field: string,
  findFault: (conditions: T["conditions"], field: string) => BrokenRule | undefined,
): BrokenRule | undefined {
  if (issuers.length > MAX_ISSUERS) return breakRule(field, `must be at most ${MAX_ISSUERS}`);
  for (const [i, { allowed, conditions }] of issuers.entries()) {
    const at = `${field}[${i}]`;
    const broken = findAllowedFault(allowed, at) ?? findFault(conditions, `${at}.conditions`);
    if (broken !== undefined) return broken;
  }
  const named = issuers.map(({ allowed }) => `${allowed.case} ${allowed.value}`);
  return new Set(named).size < named.length ? breakRule(field, "must not repeat an issuer or an origin") : undefined;
}

function findAllowedFault(allowed: AllowedIssuer["allowed"], field: string): BrokenRule | undefined {
  if (allowed.case === undefined) return breakRule(field, "must have {} or {}", "issuer", "origin");
  if (allowed.case === "issuer" && !isIssuerUrl(allowed.value))
    return breakRule(`${field}.issuer`, "must be an https URL without user, query or fragment");
  if (allowed.case === "origin" && (!isIssuerUrl(allowed.value) || new URL(allowed.value).origin !== allowed.value))
    return breakRule(`${field}.origin`, "must be an origin without a path, such as https://gitlab.example.com");
  return undefined;
}
