// The bodies of audit rows: what a change has changed, as JSON (docs/adr/0020-audit-bodies.md).
import { createHash, randomBytes } from "node:crypto";

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

/** The largest JSON of a resource that is stored whole, in bytes, unless more is allowed. */
export const MAX_PART_BYTES = 16 * 1024;
/**
 * A body is hard to guess from its hash, which more people see than the body. 96 bits are more than anybody can try.
 */
const SALT_BYTES = 12;

/**
 * Formats a change as the canonical JSON that is stored. A resource that is too large is replaced by its digest.
 *
 * @param maxAfterBytes the largest JSON of the resource after the change; before the change it is {@link MAX_PART_BYTES}
 * @returns the empty text where nothing was changed
 */
export function formatBody({ type, before, after }: Change, maxAfterBytes = MAX_PART_BYTES): string {
  if (before === undefined && after === undefined) return "";
  // In the order of their names.
  const members = [
    ...(after === undefined ? [] : [formatPart("after", after, maxAfterBytes)]),
    ...(before === undefined ? [] : [formatPart("before", before, MAX_PART_BYTES)]),
    `"salt":"${randomBytes(SALT_BYTES).toString("base64url")}"`,
    `"type":${JSON.stringify(type)}`,
  ];
  return `{${members.join()}}`;
}

function formatPart(name: "after" | "before", part: JsonFields, maxBytes: number): string {
  const json = canonicalize(part);
  if (Buffer.byteLength(json) <= maxBytes) return `"${name}":${json}`;
  const fields = Object.keys(part).sort().slice(0, MAX_FIELDS);
  return `"${name}Digest":${canonicalize({ fields, sha256: hash(json) })}`;
}

/** How many names of fields a digest has. No message of the API has as many. */
const MAX_FIELDS = 100;

/** The hash of a body that the chain covers: SHA-256 in base64url; empty where there is no body. */
export function hashBody(body: string): string {
  return body === "" ? "" : hash(body);
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
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
