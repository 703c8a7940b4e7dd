// Events: rows of the audit log whose type the published API declares for customers, as CloudEvents. What receivers check
// of them is published, so what is sent of these has the published names, and nothing of our own. What directories change by
// SCIM has no published types; receivers that do not know ours ignore them.
import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { EventAttributes_Audience, events } from "#gen/chainguard/annotations/annotations_pb.js";
import { http } from "#gen/google/api/annotations_pb.js";
import { readOption } from "../codec/fields.js";
import {
  findEventPart,
  findMembers,
  hashBody,
  isBatch,
  isDeletion,
  type JsonFields,
  PUBLISHED_TYPES,
  REGISTRY_PUSH,
  SENT_TYPES,
} from "../kernel/audit-body.js";
import { isWithin, parentOf, rootOf } from "../kernel/uidp.js";
import type { StoredAuditRow } from "../store/tables/audit.js";

/** An event as it is delivered. */
export interface CloudEvent {
  /** A UUID; the same in all attempts. */
  readonly id: string;
  readonly type: string;
  readonly source: string;
  /**
   * The uid of the resource; of a batch those of its resources, joined by commas, or where these are too long the uid of what
   * they are in. Empty for a registration.
   */
  readonly subject: string;
  /** RFC 3339. */
  readonly time: string;
  /** The uid of the group that the event belongs to; empty where it belongs to none. */
  readonly group: string;
  /** The uid of who made the change; empty for a command on the host. */
  readonly actor: string;
  /** The full name of the message that the body is the JSON of; empty where no message is. */
  readonly bodyType: string;
  /** The uid of the identity provider; of mappings and of what directories change only, otherwise empty. */
  readonly identityProvider: string;
  /** The data as JSON. */
  readonly data: string;
}

/** Which rows of the audit log are events, and what they look like. */
export type CloudEvents = ReturnType<typeof createCloudEvents>;

type EventRow = Pick<StoredAuditRow, "id" | "type" | "method" | "subjectUid" | "actorUid" | "timeMs" | "bodyHash">;

/** A stored body; see kernel/audit-body. */
interface StoredBody {
  readonly type?: string;
  readonly before?: JsonFields;
  readonly after?: JsonFields;
  readonly beforeDigest?: JsonFields;
  readonly afterDigest?: JsonFields;
}

/** What is known of a type of event from the methods that declare it. */
interface EventType {
  /** The method of the stable version, which stands for changes that no method of the API makes. */
  stable: DescMethod | undefined;
  /** The path of the collection in version 1, or in version 2 where version 1 has none. */
  path: string;
}

/** The collection of the people whom directories send. */
const SCIM_USERS = "/iam/v1/scimUsers";
/** The longest subject, in bytes. Many servers refuse a header field that is longer. */
const MAX_SUBJECT = 4_000;
/** Deletions in version 1 of these have a body without fields. */
const BARE_DELETIONS = /\.(?:account_associations|external_group_role_mappings|subscription)\.deleted\.v1$/;

/** Lists the methods that declare an event for customers, with the type of that. */
export function listEventMethods(methods: Iterable<DescMethod>): (readonly [string, DescMethod])[] {
  return [...methods].flatMap((method) => {
    const declared = readOption(method, events);
    const isSent =
      declared?.audience === EventAttributes_Audience.CUSTOMER && declared.type.startsWith(PUBLISHED_TYPES);
    return isSent ? [[declared.type, method] as const] : [];
  });
}

/** The types of the events that can be sent, in order. */
export function listEventTypes(methods: Iterable<DescMethod>): string[] {
  return [...new Set([...listEventMethods(methods).map(([type]) => type), REGISTRY_PUSH, ...SENT_TYPES])].sort();
}

/**
 * Creates what describes events.
 *
 * @param methods all methods of the API, as they are published
 * @param baseUrl the base URL of the API
 * @param registryHost the host of the registry
 * @param formatId makes the 32 hex digits of an event id from the number of a row
 */
export function createCloudEvents({
  methods,
  baseUrl,
  registryHost,
  formatId,
}: {
  readonly methods: Iterable<DescMethod>;
  readonly baseUrl: string;
  readonly registryHost: string;
  readonly formatId: (auditId: number) => string;
}) {
  const byType = new Map<string, EventType>([
    [REGISTRY_PUSH, { stable: undefined, path: "" }],
    ...SENT_TYPES.map((type) => [type, { stable: undefined, path: SCIM_USERS }] as const),
  ]);
  const byPath = new Map<string, DescMethod>();
  const messages = new Map<string, DescMessage>();
  for (const [type, method] of listEventMethods(methods)) {
    const known = byType.get(type) ?? { stable: undefined, path: "" };
    byType.set(type, known);
    const { typeName } = method.parent;
    if (!typeName.startsWith("chainguard.")) continue;
    byPath.set(`/${typeName}/${method.name}`, method);
    messages.set(method.output.typeName, method.output);
    if (typeName.includes(".v2.")) known.stable = method;
    else if (!/\.v\d/.test(typeName) && known.path === "") known.path = readCollection(method);
  }
  for (const known of byType.values()) {
    if (known.path === "" && known.stable !== undefined) known.path = readCollection(known.stable);
  }

  function isEvent({ type }: Pick<EventRow, "type">): boolean {
    return byType.has(type);
  }

  /**
   * @param stored the body of the row; undefined where it has none
   * @returns the event, or why it cannot be sent as it was: older versions have recorded less of some changes, and a log may
   * have been changed
   */
  function build(row: EventRow, stored: string | undefined): CloudEvent | string {
    const { type, subjectUid, actorUid, timeMs } = row;
    const { stable, path = "" } = byType.get(type) ?? {};
    // What the log cannot prove is not sent.
    if (hashBody(stored ?? "") !== row.bodyHash) return "the audit log was changed";
    const body = (stored ? JSON.parse(stored) : {}) as StoredBody;
    const needed = findEventPart(type);
    const part = needed && body[needed];
    if (needed !== undefined && part === undefined) {
      const isDigest = body[`${needed}Digest`] !== undefined;
      return `the version that made the change has recorded ${isDigest ? "only a digest of its body" : "no body of it"}`;
    }
    const method = byPath.get(row.method) ?? stable;
    const message = messages.get(body.type ?? "");
    const members = part && isBatch(type) ? listUids(part) : undefined;
    if (isBatch(type) && members === undefined) return "the audit log does not name what the batch has changed";
    const shown = isDeletion(type)
      ? buildDeletion(row, members, method)
      : part && (message ? keepPublished(message, part) : part);
    const isPush = type === REGISTRY_PUSH;
    const data = { actor: { subject: actorUid, act: {} }, body: shown ?? {} };
    return {
      ...{ id: formatEventUuid(formatId(row.id)), type, subject: formatSubject(type, subjectUid, members) },
      source: isPush ? registryHost : `${baseUrl}${path}`,
      time: new Date(timeMs).toISOString(),
      group: groupOf(type, members?.[0] ?? subjectUid),
      actor: actorUid,
      bodyType: isPush ? "" : isDeletion(type) ? (method?.input.typeName ?? "") : (body.type ?? ""),
      identityProvider: /\.(?:external_group_role_mappings|scim)\./.test(type)
        ? (parentOf(members?.[0] ?? subjectUid) ?? "")
        : "",
      data: JSON.stringify(data),
    };
  }

  return {
    isEvent,
    /** Whether a subscription at a group gets an event. */
    matches: (row: Pick<EventRow, "type" | "subjectUid">, groupUid: string): boolean =>
      isEvent(row) && isWithin(row.subjectUid, groupUid),
    build,
  };
}

/** Writes the 32 hex digits of an event id as a UUID. */
export function formatEventUuid(digits: string): string {
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The hex digits of an event id that is written as a UUID or without hyphens; undefined for another text. */
export function parseEventUuid(text: string): string | undefined {
  const isUuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/.test(text);
  return isUuid || /^[0-9a-f]{32}$/.test(text) ? text.replaceAll("-", "") : undefined;
}

/** Fields with these numbers are our own. Receivers that are strict would reject them. */
const FIRST_OWN_FIELD = 1_000;

function keepPublished({ fields }: DescMessage, shown: JsonFields): JsonFields {
  const kept: Record<string, JsonFields[string]> = { ...shown };
  for (const field of fields) {
    const value = kept[field.jsonName];
    if (value === undefined) continue;
    if (field.number >= FIRST_OWN_FIELD) delete kept[field.jsonName];
    else if (field.message && typeof value === "object" && value !== null) {
      const { message } = field;
      if (Array.isArray(value)) kept[field.jsonName] = value.map((one) => keepPublished(message, one as JsonFields));
      else if (field.fieldKind === "message") kept[field.jsonName] = keepPublished(message, value as JsonFields);
    }
  }
  return kept;
}

// The path without what follows the collection.
function readCollection(method: DescMethod): string {
  const { pattern } = readOption(method, http) ?? {};
  const path = pattern && "value" in pattern && typeof pattern.value === "string" ? pattern.value : "";
  return path.replace(/\/?\{.*$/, "").replace(/(?::\w+|\/batch)$/, "");
}

// The request of the deletion: the uid in the field that names the resource, and of a batch the uids of its members.
function buildDeletion(
  { type, subjectUid }: EventRow,
  members: readonly string[] | undefined,
  method: DescMethod | undefined,
): JsonFields {
  if (method === undefined) return {};
  const isV1 = !/\.v\d/.test(method.parent.typeName);
  if (isV1 && BARE_DELETIONS.test(type)) return {};
  const [first, ...others] = method.input.fields;
  const list = others.find(({ fieldKind }) => fieldKind === "list");
  return {
    ...(first && { [first.jsonName]: subjectUid }),
    ...(list && members && { [list.jsonName]: members }),
  };
}

function listUids(part: JsonFields): string[] | undefined {
  return findMembers(part)?.map(({ uid, id = uid }) => String(id));
}

// All members or none: a receiver would take a part of them for all. The body has all of them.
function formatSubject(type: string, subjectUid: string, members: readonly string[] | undefined): string {
  if (type.endsWith(".registered.v1")) return "";
  const joined = members?.join(",");
  return joined === undefined || joined.length > MAX_SUBJECT ? subjectUid : joined;
}

function groupOf(type: string, uid: string): string {
  if (/\.(?:group\.(?:created|updated)|account_associations\.\w+|terms\.accepted|registered)\.v1$/.test(type))
    return uid;
  if (/\.(?:registry\.(?:(?:tag|overlay|overlay_binding)\.\w+|push)|scim\.(?:user|group)\.\w+)\.v1$/.test(type))
    return rootOf(uid);
  return parentOf(uid) ?? "";
}
