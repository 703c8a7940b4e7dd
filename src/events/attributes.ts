// The attributes of an event: their header fields, and their digest, which the token of a delivery proves (docs/events.md).
import { createHash } from "node:crypto";
import type { CloudEvent } from "./cloud-event.js";

/** Names and values, in the order of the names. */
type Attributes = readonly (readonly [name: string, value: string])[];

/** Lists the attributes of an event. Those that are empty are left out, because CloudEvents have none. */
export function listAttributes(event: CloudEvent): Attributes {
  const { id, type, source, subject, time, group, actor, bodyType, identityProvider } = event;
  const all = {
    ...{ specversion: "1.0", id, type, source, subject, time, group, actor, audience: "customer" },
    ...{ bodytype: bodyType, identityprovider: identityProvider },
  };
  return Object.entries(all)
    .filter(([, value]) => value !== "")
    .sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Formats attributes as header fields of the binary mode. */
export function formatHeaders(attributes: Attributes): Record<string, string> {
  return Object.fromEntries(attributes.map(([name, value]) => [`ce-${name}`, encodeValue(value)]));
}

// HTTP binding of CloudEvents 1.0, section 3.1.3.2: all but printable ASCII, and the space, the quote and the percent sign.
function encodeValue(value: string): string {
  return value.replace(/[^\x21\x23\x24\x26-\x7e]+/g, encodeURIComponent);
}

/**
 * Computes the digest of attributes: `sha256:` and the SHA-256, in lower-case hexadecimal, of one line for each attribute, in
 * the order of the names: the name, `=`, the length of the value in bytes, `:`, the value and a line feed. A value cannot be
 * taken for another attribute, because its length stands before it. Values are those of the attributes, in UTF-8: not encoded
 * as in header fields.
 */
export function digestAttributes(attributes: Attributes): string {
  const hash = createHash("sha256");
  for (const [name, value] of attributes) hash.update(`${name}=${Buffer.byteLength(value)}:${value}\n`);
  return `sha256:${hash.digest("hex")}`;
}
