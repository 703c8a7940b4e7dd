// The fields of resources in files: how each is read, by the rules of the service, and in which form values are compared.
import {
  createRegistry,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  toJson,
} from "@bufbuild/protobuf";
import {
  type AllowedIssuer,
  AllowedIssuerSchema,
  type Condition,
  ConditionSchema,
} from "#gen/arbor/trust/v1/trust_pb.js";
import { CapabilitySchema } from "#gen/chainguard/capabilities/capabilities_pb.js";
import {
  type Identity,
  IdentitySchema,
  ServicePrincipalSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { JsonReadError } from "../../../codec/json-read-value.js";
import { readMessage } from "../../../codec/json-reader.js";
import { type BrokenRule, formatViolation } from "../../../kernel/errors.js";
import { isDescription } from "../../../kernel/field-rules.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import {
  areStaticKeys,
  findConditionListFault,
  findIssuersFault,
  isAwsIdentity,
  isClaimMatch,
} from "../../../kernel/trust-rules.js";
import { expandValues, NUMBER_RULE, shortenValues } from "../iam/condition-values.js";
import { findEnumValue, formatEnumRule, formatEnumValue } from "../iam/field-flags.js";
import { canonical } from "./model.js";

/** Throws the error of a value of a file. `path` is that of what is wrong in the resource, such as `claimMatch.issuer`. */
export type Reject = (path: string, rule: string) => never;

/** Where a value is from: a file, whose values must keep the rules, or a response of the service. */
export type Source = { readonly reject: Reject } | "service";

/** A field of a resource. */
export interface FieldRow {
  readonly name: string;
  /** Reads a value in the form in which values are compared. */
  readonly parse: (json: JsonValue, source: Source) => JsonValue;
  /** Adds to the value of a file what it leaves to the service. */
  readonly complete?: (value: JsonValue, actual: JsonValue) => JsonValue;
}

const registry = createRegistry();

/** Throws the error of a value of a file. */
function fail(source: Source, path: string, rule: string): never {
  if (source === "service") throw new TypeError(`the service has sent a ${path} that ${rule}`);
  return source.reject(path, rule);
}

/** Reads a message by its JSON. */
function read(desc: DescMessage, json: JsonValue, source: Source, prefix = "") {
  try {
    return readMessage(desc, json, prefix, { registry, ignoreUnknown: source === "service" });
  } catch (error) {
    if (!(error instanceof JsonReadError)) throw error;
    const { field, ...broken } = error.violation;
    return fail(source, field, formatRule(broken));
  }
}

function formatRule({ rule, args }: Omit<BrokenRule, "subject">): string {
  return formatViolation({ field: "", rule, ...(args && { args }) });
}

/**
 * Throws the error of a rule that the service would reject the value of a file by. What is stored may break a rule by now,
 * such as that of keys that have expired.
 */
function check(source: Source, path: string, find: () => BrokenRule | undefined): void {
  if (source === "service") return;
  const broken = find();
  if (broken !== undefined) fail(source, broken.subject.startsWith(path) ? broken.subject : path, formatRule(broken));
}

export const description: FieldRow = textField("description");
export const company: FieldRow = textField("company");

function textField(name: string): FieldRow {
  return {
    name,
    parse(json, source) {
      if (typeof json !== "string") return fail(source, name, "must be a text; put a number in quotation marks");
      check(source, name, () => isDescription(json, name));
      return json;
    },
  };
}

/** The capabilities of a role, as tables show them. */
export const capabilities: FieldRow = {
  name: "capabilities",
  parse(json, source) {
    if (!Array.isArray(json)) return fail(source, "capabilities", "must be a list of capabilities");
    if (json.length === 0) return fail(source, "capabilities", "must name at least one capability");
    const names = json.map((one, i) => {
      const value = findEnumValue(CapabilitySchema, String(one));
      if (value !== undefined && value.number !== 0) return formatEnumValue(value);
      // A newer service may have capabilities that this version does not know.
      if (source === "service") return String(one);
      return fail(source, `capabilities[${i}]`, formatEnumRule(CapabilitySchema, String(one)));
    });
    return [...new Set(names)].sort();
  },
};

/** The number of a capability that {@link capabilities} has read. */
export function numberOfCapability(name: string): number {
  return findEnumValue(CapabilitySchema, name)?.number ?? 0;
}

/** The members of the relationship of an identity, of which it has one. */
export const relationshipNames = ["claimMatch", "staticKeys", "awsIdentity", "servicePrincipal"] as const;

type RelationshipName = (typeof relationshipNames)[number];

const rules: Readonly<Record<RelationshipName, (value: unknown, field: string) => BrokenRule | undefined>> = {
  claimMatch: isClaimMatch,
  staticKeys: areStaticKeys,
  awsIdentity: isAwsIdentity,
  servicePrincipal: (value, field) =>
    value === 0 ? { subject: field, rule: "must name a service principal" } : undefined,
};

export const relationships: readonly FieldRow[] = relationshipNames.map((name) => ({
  name,
  parse(json, source) {
    const message = read(IdentitySchema, { [name]: spell(name, json, source) }, source) as Identity;
    const { case: found, value } = message.relationship;
    if (found !== name) return fail(source, name, "must have a value");
    check(source, name, () => rules[name](value, name));
    const shown = (toJson(IdentitySchema, message) as JsonObject)[name] ?? null;
    return canonical(name === "staticKeys" ? truncateExpiry(shown as JsonObject) : shown);
  },
  ...(name === "staticKeys" && { complete: completeExpiry }),
}));

function spell(name: RelationshipName, json: JsonValue, source: Source): JsonValue {
  if (name !== "servicePrincipal") return json;
  const value = findEnumValue(ServicePrincipalSchema, String(json));
  return value?.name ?? fail(source, name, formatEnumRule(ServicePrincipalSchema, String(json)));
}

// The service compares the time to the second.
function truncateExpiry({ expirationTime, ...keys }: JsonObject): JsonObject {
  if (typeof expirationTime !== "string") return keys;
  return { ...keys, expirationTime: new Date(Math.floor(Date.parse(expirationTime) / 1000) * 1000).toISOString() };
}

// Keys without a time in the file keep the one that they have.
function completeExpiry(value: JsonValue, actual: JsonValue): JsonValue {
  const { expirationTime } = actual as JsonObject;
  return canonical({ ...(expirationTime !== undefined && { expirationTime }), ...(value as JsonObject) });
}

/** The conditions of an identity, as files have them. */
export const conditions: FieldRow = {
  name: "conditions",
  parse(json, source) {
    const messages = readConditions(json, "conditions", source);
    check(source, "conditions", () => findConditionListFault(messages, "conditions"));
    return canonical(shortenConditions(messages));
  },
};

function readConditions(json: JsonValue, path: string, source: Source): Condition[] {
  if (!Array.isArray(json)) return fail(source, path, "must be a list of conditions");
  return json.map((one, i) => {
    const at = `${path}[${i}]`;
    const expanded = expandValues(one, (value) => fail(source, at, `has a number that ${NUMBER_RULE}: ${value}`));
    return read(ConditionSchema, expanded as JsonValue, source, at) as Condition;
  });
}

function shortenConditions(messages: readonly Condition[]): JsonObject[] {
  return messages.map((one) => shortenValues(toJson(ConditionSchema, one) as JsonObject));
}

/** Converts conditions that a field has read to messages. */
export function toConditions(value: JsonValue): Condition[] {
  return (value as JsonValue[]).map((one) => fromJson(ConditionSchema, expandValues(one, rejectRead) as JsonObject));
}

function rejectRead(value: number): never {
  throw new TypeError(`${value} was read as a value of a condition`);
}

/** The issuers of an issuer guard. */
export const issuers: FieldRow = {
  name: "issuers",
  parse(json, source) {
    if (!Array.isArray(json)) return fail(source, "issuers", "must be a list of issuers");
    const messages = json.map((one, i) => {
      const path = `issuers[${i}]`;
      if (!isJsonObject(one)) return fail(source, path, "must have issuer or origin");
      const { conditions: own = [], ...rest } = one as JsonObject;
      const { allowed } = read(AllowedIssuerSchema, rest, source, path) as AllowedIssuer;
      return { allowed, conditions: readConditions(own, `${path}.conditions`, source) };
    });
    check(source, "issuers", () => findIssuersFault(messages, "issuers", findConditionListFault));
    return canonical(
      messages.map(({ allowed, conditions: own }) => ({
        [String(allowed.case)]: allowed.value ?? "",
        ...(own.length > 0 && { conditions: shortenConditions(own) }),
      })),
    );
  },
};

/** What an issuer guard says of the other relationships; each is allowed unless it is false. */
export const guardSwitches: readonly FieldRow[] = ["staticKeys", "aws", "servicePrincipals"].map((name) => ({
  name,
  parse: (json, source) => (typeof json === "boolean" ? json : fail(source, name, "must be true or false")),
}));

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** When a role binding ends; null for one that does not. */
export const endTime: FieldRow = {
  name: "endTime",
  parse(json, source) {
    if (json === null) return null;
    const ms = typeof json === "string" && TIME.test(json) ? Date.parse(json) : Number.NaN;
    if (!Number.isNaN(ms)) return new Date(ms).toISOString();
    return fail(source, "endTime", "must be a time such as 2026-01-31T12:00:00Z, or null for no end");
  },
};
