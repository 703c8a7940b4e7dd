// Requests to the APIs of platforms for the numeric ids of repositories, without credentials: they go to the platform itself,
// because a service that was asked for an id could name any. They are bounded in time and size, and follow no redirect: a
// repository that has moved is one of another name.
import type { JsonObject } from "@bufbuild/protobuf";
import { VERSION } from "../../../../kernel/version.js";
import { Code, CommandError } from "../../../errors.js";
import { findFailureCause } from "../../connection-failure.js";
import { parseJsonObject } from "../../service.js";

/** How long one request may take, in milliseconds. */
const REQUEST_MS = 10_000;
const MAX_BYTES = 1024 * 1024;

/**
 * Fetches a JSON object.
 *
 * @param what what it describes, with its name
 * @param remedy what to do when it cannot be read
 * @throws CommandError NOT_FOUND for what is private or missing, and for what has moved; RESOURCE_EXHAUSTED when the platform
 * accepts no more requests for now; UNAVAILABLE for all other failures
 */
export async function fetchPlatform(url: URL, what: string, remedy: string): Promise<JsonObject> {
  const fail = (code: CommandError["code"], text: string, cause?: unknown) =>
    new CommandError(code, `${text}\n  ${remedy}`, cause);
  const signal = AbortSignal.timeout(REQUEST_MS);
  let status: number;
  let headers: Headers;
  let text: string;
  try {
    const response = await fetch(url, {
      headers: { accept: "application/json", "user-agent": `arbor/${VERSION}` },
      redirect: "manual",
      signal,
    });
    ({ status, headers } = response);
    text = await readBody(response);
  } catch (cause) {
    if (cause instanceof CommandError) throw fail(cause.code, `${url.origin} ${cause.message}`);
    const reason = signal.aborted ? `no response within ${REQUEST_MS} ms` : (findFailureCause(cause) ?? "it failed");
    throw fail(Code.Unavailable, `${url.origin} cannot be asked for the id of ${what}: ${reason}`, cause);
  }
  if (status === 200) return parseJsonObject(text) as JsonObject;
  if (status >= 300 && status < 400) throw fail(Code.NotFound, `${what} has moved: give the name that it has now`);
  if (status === 404) throw fail(Code.NotFound, `${url.origin} shows nobody without a login ${what}`);
  if (status === 429 || headers.get("x-ratelimit-remaining") === "0")
    throw fail(Code.ResourceExhausted, `${url.origin} accepts no more requests from here for now`);
  throw fail(Code.Unavailable, `${url.origin} responded with the status ${status} when asked for ${what}`);
}

async function readBody({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new CommandError(Code.Unavailable, `sends more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Reads an id of a response.
 *
 * @throws CommandError UNAVAILABLE when it has none
 */
export function readNumber(value: unknown, what: string): string {
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return String(value);
  throw new CommandError(Code.Unavailable, `the response has no id of ${what}: is this the address of the platform?`);
}

/** Reads a text of a response; `standard` when it has none. */
export function readName(value: unknown, standard: string): string {
  return typeof value === "string" && value !== "" ? value : standard;
}
