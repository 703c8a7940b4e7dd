// What a registry tells of pushes and deletions: the envelope of events of the
// distribution project (application/vnd.docker.distribution.events.v1+json).
import { invalidArgument, malformedRequest } from "../../kernel/errors.js";

/** Something that befell a repo of the registry. */
export interface RegistryEvent {
  /** Given once, however often the event is sent. */
  readonly id: string;
  /** When it happened by the clock of the registry, in epoch milliseconds. */
  readonly timeMs: number;
  readonly action: "push" | "delete";
  /** The path of the repo. */
  readonly path: string;
  /** Empty where the event names no tag. */
  readonly tag: string;
  /** Empty where the event names no manifest. */
  readonly digest: string;
  /** Whom the registry's token was for; empty where it does not say. */
  readonly actor: string;
}

const MAX_ID = 200;
// RFC 3339; registries write nanoseconds and their own time zone.
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
// OCI distribution specification, "Pulling manifests".
const TAG = /^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$/;
const DIGEST = /^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$/;
const MANIFEST = /^application\/vnd\.(?:docker\.distribution\.manifest|oci\.image\.(?:manifest|index))\./;

/** Whether this is the digest of something in a registry. */
export function isDigest(text: string): boolean {
  return DIGEST.test(text);
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The events of an envelope that change what tags there are, in its order; pulls, mounts and layers
 * are passed over. Members it does not know are ignored, so that nothing a client of the registry
 * writes into its requests can make an envelope unreadable.
 *
 * @throws ApiError INVALID_ARGUMENT that names the field, as in `events[2].timestamp`.
 */
export function eventsIn(body: Uint8Array): RegistryEvent[] {
  const envelope = parsed(body);
  if (!isObject(envelope) || !Array.isArray(envelope.events)) {
    throw invalidArgument({ field: "events", description: "events must be a list" });
  }
  return envelope.events.flatMap((event: unknown, i) => eventOf(event, `events[${i}]`) ?? []);
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw malformedRequest("the body must be JSON");
  }
}

function eventOf(event: unknown, field: string): RegistryEvent | undefined {
  if (!isObject(event)) throw invalidArgument({ field, description: `${field} must be an object` });
  const { action } = event;
  if (typeof action !== "string") throw broken(`${field}.action`, "a string");
  if (action !== "push" && action !== "delete") return undefined;
  const { target } = event;
  if (!isObject(target)) throw broken(`${field}.target`, "an object");
  const tag = textOf(target, "tag", `${field}.target`);
  const digest = textOf(target, "digest", `${field}.target`);
  if (action === "push" && tag === "" && !MANIFEST.test(textOf(target, "mediaType", `${field}.target`)))
    return undefined;
  const id = textOf(event, "id", field);
  if (id === "" || id.length > MAX_ID) throw broken(`${field}.id`, `a string of 1 to ${MAX_ID} characters`);
  const path = textOf(target, "repository", `${field}.target`);
  if (path === "") throw broken(`${field}.target.repository`, "the path of a repository");
  if (tag !== "" && !TAG.test(tag)) throw broken(`${field}.target.tag`, "a tag");
  if (digest === "" ? action === "push" : !isDigest(digest)) throw broken(`${field}.target.digest`, "a digest");
  const timeMs = timeIn(textOf(event, "timestamp", field), `${field}.timestamp`);
  const actor = isObject(event.actor) ? textOf(event.actor, "name", `${field}.actor`) : "";
  return { id, timeMs, action, path, tag, digest, actor };
}

function timeIn(text: string, field: string): number {
  const timeMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (!(timeMs >= 0)) throw broken(field, "an RFC 3339 time from 1970 on");
  return timeMs;
}

function textOf(from: Fields, name: string, field: string): string {
  const value = from[name] ?? "";
  if (typeof value !== "string") throw broken(`${field}.${name}`, "a string");
  return value;
}

function broken(field: string, what: string) {
  return invalidArgument({ field, description: `${field} must be ${what}` });
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
