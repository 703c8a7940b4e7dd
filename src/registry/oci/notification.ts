// Parses the notifications of a registry: the envelope of events of the distribution project
// (application/vnd.docker.distribution.events.v1+json).

import { invalidArgument, invalidRequest } from "../../kernel/errors.js";
import { isJsonObject } from "../../kernel/strict-json.js";
import { isTagName, parseDigest } from "./reference.js";

/** An event of a repo in the registry. */
export interface RegistryEvent {
  /** The same for every delivery of the event. */
  readonly id: string;
  /** The time by the clock of the registry, in epoch milliseconds. */
  readonly timeMs: number;
  readonly action: "push" | "delete";
  /** The path of the repo. */
  readonly path: string;
  /** Empty where the event names no tag. */
  readonly tag: string;
  /** Empty where the event names no manifest. */
  readonly digest: string;
  /** The subject of the registry token; empty where the event names none. */
  readonly actor: string;
  /** The request at the registry, as its events tell it; empty what they do not. */
  readonly request: { readonly method: string; readonly remoteAddress: string; readonly userAgent: string };
}

/** The longest text about a request that is kept, in characters. */
const MAX_TOLD = 256;

const MAX_ID = 200;
// RFC 3339, with nanoseconds and any time zone.
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
const MANIFEST = /^application\/vnd\.(?:docker\.distribution\.manifest|oci\.image\.(?:manifest|index))\./;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Parses the events of an envelope that change tags, in its order. Pulls, mounts and layers are skipped. Unknown
 * members are ignored, because clients of the registry can add some through their requests.
 *
 * @throws ApiError INVALID_ARGUMENT that names the field, as in `events[2].timestamp`.
 */
export function parseEvents(body: Uint8Array): RegistryEvent[] {
  const envelope = parseJson(body);
  if (!isJsonObject(envelope) || !Array.isArray(envelope.events)) {
    throw invalidArgument({ field: "events", rule: "must be a list" });
  }
  return envelope.events.flatMap((event: unknown, i) => parseEvent(event, `events[${i}]`) ?? []);
}

function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw invalidRequest("the body must be JSON");
  }
}

function parseEvent(event: unknown, field: string): RegistryEvent | undefined {
  if (!isJsonObject(event)) throw invalidArgument({ field, rule: "must be an object" });
  const { action } = event;
  if (typeof action !== "string") throw fieldError(`${field}.action`, "a string");
  if (action !== "push" && action !== "delete") return undefined;
  const { target } = event;
  if (!isJsonObject(target)) throw fieldError(`${field}.target`, "an object");
  const tag = readText(target, "tag", `${field}.target`);
  const digestText = readText(target, "digest", `${field}.target`);
  if (action === "push" && tag === "" && !MANIFEST.test(readText(target, "mediaType", `${field}.target`)))
    return undefined;
  const id = readText(event, "id", field);
  if (id === "" || id.length > MAX_ID) throw fieldError(`${field}.id`, `a string of 1 to ${MAX_ID} characters`);
  const path = readText(target, "repository", `${field}.target`);
  if (path === "") throw fieldError(`${field}.target.repository`, "the path of a repository");
  if (tag !== "" && !isTagName(tag)) throw fieldError(`${field}.target.tag`, "a tag");
  const digest = digestText === "" && action === "delete" ? "" : parseDigest(digestText);
  if (digest === undefined) throw fieldError(`${field}.target.digest`, "a digest");
  const timeMs = parseTime(readText(event, "timestamp", field), `${field}.timestamp`);
  const actor = isJsonObject(event.actor) ? readText(event.actor, "name", `${field}.actor`) : "";
  return { id, timeMs, action, path, tag, digest, actor, request: readRequest(event) };
}

// Clients of the registry choose some of these, so they are never refused.
function readRequest({ request }: Fields): RegistryEvent["request"] {
  const fields = isJsonObject(request) ? request : {};
  const told = (name: string) => (typeof fields[name] === "string" ? fields[name].slice(0, MAX_TOLD) : "");
  return { method: told("method"), remoteAddress: told("addr"), userAgent: told("useragent") };
}

function parseTime(text: string, field: string): number {
  const timeMs = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (!(timeMs >= 0)) throw fieldError(field, "an RFC 3339 time from 1970 on");
  return timeMs;
}

function readText(from: Fields, name: string, field: string): string {
  const value = from[name] ?? "";
  if (typeof value !== "string") throw fieldError(`${field}.${name}`, "a string");
  return value;
}

function fieldError(field: string, what: string) {
  return invalidArgument({ field, rule: `must be ${what}` });
}
