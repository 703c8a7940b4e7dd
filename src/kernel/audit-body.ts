// The bodies of audit rows: what a change has changed, as JSON (docs/adr/0020-audit-bodies.md).
import { randomBytes } from "node:crypto";
import { sha256 } from "./digest.js";
import { isUidp } from "./uidp.js";

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json | undefined };
export type JsonFields = { readonly [name: string]: Json | undefined };

/** What a change has changed. */
export interface Change {
  /** The full name of the message that both are the JSON of, or what names their form where no message has it. */
  readonly type: string;
  /** The resource before the change; undefined for a creation. */
  readonly before?: JsonFields | undefined;
  /** The resource after the change; undefined for a deletion. */
  readonly after?: JsonFields | undefined;
}

/** The types of events, and of their bodies, that organisations see of commands on the host. */
export const QUOTA_SET = "arbor.quota.set.v1";
export const REGISTRY_MOVED = "arbor.registry.moved.v1";

/** The type of the events, and of their bodies, that say that a manifest was pushed to the registry. */
export const REGISTRY_PUSH = "dev.chainguard.registry.push.v1";

/** The types of events, and of their bodies, that say what a directory has changed by SCIM. */
export const SCIM_USER_CREATED = "arbor.scim.user.created.v1";
export const SCIM_USER_UPDATED = "arbor.scim.user.updated.v1";
export const SCIM_USER_DELETED = "arbor.scim.user.deleted.v1";
/** A change that a directory wants is rejected. */
export const SCIM_USER_REJECTED = "arbor.scim.user.rejected.v1";

export const SCIM_GROUP_CREATED = "arbor.scim.group.created.v1";
export const SCIM_GROUP_UPDATED = "arbor.scim.group.updated.v1";
export const SCIM_GROUP_DELETED = "arbor.scim.group.deleted.v1";

/** The types of our own that are sent to subscriptions. */
export const SENT_TYPES = [
  ...[SCIM_USER_CREATED, SCIM_USER_UPDATED, SCIM_USER_DELETED, SCIM_USER_REJECTED],
  ...[SCIM_GROUP_CREATED, SCIM_GROUP_UPDATED, SCIM_GROUP_DELETED],
] as const;

/** The types of events that receivers know begin with this; those of our own do not. */
export const PUBLISHED_TYPES = "dev.chainguard.";

/** The largest JSON of a resource that is stored whole, in bytes, where nothing is built from it. */
export const MAX_PART_BYTES = 16 * 1024;
/**
 * A body is hard to guess from its hash, which more people see than the body. 96 bits are more than anybody can try.
 */
const SALT_BYTES = 12;

type Part = "after" | "before";

/**
 * The part of a body that the event of a type is built from. Undefined where an event needs none: the deletion of one resource
 * is told by its subject, and most types of our own are not sent. Whoever writes bodies stores this part whole, and whoever builds
 * events reads no other.
 *
 * @param eventType the type of the row
 */
export function findEventPart(eventType: string): Part | undefined {
  if (!eventType.startsWith(PUBLISHED_TYPES) && !isSent(eventType)) return undefined;
  if (!isDeletion(eventType)) return "after";
  return isBatch(eventType) ? "before" : undefined;
}

function isSent(eventType: string): boolean {
  return (SENT_TYPES as readonly string[]).includes(eventType);
}

/** Whether the events of a type tell of a deletion. */
export function isDeletion(eventType: string): boolean {
  return /\.deleted(?:\.batch)?\.v1$/.test(eventType);
}

/** Whether the events of a type tell of several resources. */
export function isBatch(eventType: string): boolean {
  return eventType.endsWith(".batch.v1");
}

/** The resources that a part of a body lists; undefined where it is one resource. */
export function findMembers(part: JsonFields): readonly JsonFields[] | undefined {
  return Object.values(part).find(
    (value): value is readonly JsonFields[] => Array.isArray(value) && value.length > 0 && isResource(value[0]),
  );
}

function isResource(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { uid, id = uid } = value as JsonFields;
  return typeof id === "string" && isUidp(id);
}

/**
 * Formats a change as the canonical JSON that is stored. A part above {@link MAX_PART_BYTES} is replaced by its digest, unless
 * an event is built from it, or it lists resources, which nothing else in the log names.
 *
 * @param eventType the type of the row that the body is for
 * @returns the empty text where nothing was changed
 */
export function formatBody({ type, before, after }: Change, eventType: string): string {
  if (before === undefined && after === undefined) return "";
  const whole = findEventPart(eventType);
  // In the order of their names.
  const members = [
    ...(after === undefined ? [] : [formatPart("after", after, whole)]),
    ...(before === undefined ? [] : [formatPart("before", before, whole)]),
    `"salt":"${randomBytes(SALT_BYTES).toString("base64url")}"`,
    `"type":${JSON.stringify(type)}`,
  ];
  return `{${members.join()}}`;
}

function formatPart(name: Part, part: JsonFields, whole: Part | undefined): string {
  const json = canonicalize(part);
  if (name === whole || Buffer.byteLength(json) <= MAX_PART_BYTES || findMembers(part)) return `"${name}":${json}`;
  const fields = Object.keys(part).sort().slice(0, MAX_FIELDS);
  return `"${name}Digest":${canonicalize({ fields, sha256: sha256(json).toString("base64url") })}`;
}

/** How many names of fields a digest has. No message of the API has as many. */
const MAX_FIELDS = 100;

/** The hash of a body that the chain covers: SHA-256 in base64url; empty where there is no body. */
export function hashBody(body: string): string {
  return body === "" ? "" : sha256(body).toString("base64url");
}

/**
 * Formats a value as canonical JSON (RFC 8785): the members of objects in the order of their names, no whitespace.
 * `JSON.stringify` writes everything else as the RFC demands.
 */
export function canonicalize(value: Json): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(",")}]`;
  const members = Object.entries(value).filter((member): member is [string, Json] => member[1] !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalize(member)}`).join(",")}}`;
}
