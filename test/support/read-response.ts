// Reads a response by its protocol, so that two can be compared by what they say: messages as JSON, errors with their
// details, trailers wherever the protocol has them.
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import {
  createRegistry,
  type DescMethod,
  type DescService,
  fromBinary,
  type JsonObject,
  type JsonValue,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { file_google_rpc_error_details as errorDetailsFile } from "#gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "#gen/google/rpc/status_pb.js";
import type { Field } from "./rpc-forms.js";

/** A response as it came. */
export interface WireResponse {
  /** How it ended: `complete`, `trailers-only`, `reset 8`, `goaway 1`, `closed`, `went on`, or `nothing` where none came in time. */
  readonly end: string;
  /** What became of the connection: `kept`, `closed`, or over HTTP/2 the reset that followed, such as `reset 0`. */
  readonly connection: string;
  /** The statuses of informational responses. */
  readonly interim: readonly number[];
  readonly status: number | undefined;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  readonly trailers: readonly Field[] | undefined;
}

/** What must be known of a request to read its response. */
export interface AnsweredRequest {
  /** The method of HTTP. */
  readonly method: string;
  /** What it calls, if that is known, to read messages. */
  readonly rpc?: DescMethod | undefined;
}

/** Reads responses. */
export type ReadResponse = (request: AnsweredRequest, response: WireResponse) => JsonObject;

/** Differ from response to response, or follow from the rest. */
const LEFT_OUT = new Set(["date", "keep-alive"]);
/** The flags of envelopes. */
const COMPRESSED = 1;
const END_OF_STREAM = 2;
const TRAILERS = 0x80;
const PREFIX_BYTES = 5;

/** Creates the reader. @param services whose messages may be in an Any */
export function createReader(services: readonly DescService[]): ReadResponse {
  const registry = createRegistry(...services.map(({ file }) => file), errorDetailsFile, StatusSchema);

  function readMessage(rpc: DescMethod | undefined, bytes: Buffer, isJson: boolean): JsonValue {
    if (isJson) return readJson(bytes);
    if (rpc === undefined) return { bytes: bytes.toString("hex") };
    try {
      const message = fromBinary(rpc.output, bytes);
      const json = toJson(rpc.output, message, { registry });
      // The same message may be written in several ways, such as with empty values.
      return { message: json, isCanonical: Buffer.from(toBinary(rpc.output, message)).equals(bytes) };
    } catch (error) {
      return { unreadable: String(error), bytes: bytes.toString("hex") };
    }
  }

  function readDetail(type: string, value: Buffer): JsonValue {
    const desc = registry.getMessage(type);
    if (desc === undefined) return { type, value: value.toString("hex") };
    return { type, value: toJson(desc, fromBinary(desc, value), { registry }) };
  }

  // The errors of Connect have details in base64, beside a readable form.
  function readConnectError(error: JsonValue | undefined): JsonValue | undefined {
    if (typeof error !== "object" || error === null || Array.isArray(error) || !Array.isArray(error.details))
      return error;
    const details = error.details.map((detail) => {
      const { type, value, ...more } = detail as JsonObject;
      if (typeof type !== "string" || typeof value !== "string") return detail;
      return { ...(readDetail(type, Buffer.from(value, "base64")) as JsonObject), ...more };
    });
    return { ...error, details };
  }

  function readFields(fields: readonly Field[]): JsonObject {
    const read: Record<string, JsonValue> = {};
    for (const [name, value] of fields) {
      if (LEFT_OUT.has(name)) continue;
      const item = name === "grpc-status-details-bin" ? readStatus(value) : value;
      const before = read[name];
      read[name] = before === undefined ? item : [...(Array.isArray(before) ? before : [before]), item];
    }
    return read;
  }

  function readStatus(value: string): JsonValue {
    const { code, message, details } = fromBinary(StatusSchema, Buffer.from(value, "base64"));
    const read = details.map(({ typeUrl, value: bytes }) =>
      readDetail(typeUrl.slice(typeUrl.lastIndexOf("/") + 1), Buffer.from(bytes)),
    );
    return { code, message, details: read };
  }

  function readEnvelopes(type: string, body: Buffer, rpc: DescMethod | undefined): JsonObject {
    const isJson = type.endsWith("json");
    const messages: JsonValue[] = [];
    let ending: JsonValue | undefined;
    let rest = body;
    while (rest.length >= PREFIX_BYTES) {
      const flag = rest[0] ?? 0;
      const length = rest.readUInt32BE(1);
      if (rest.length < PREFIX_BYTES + length) break;
      const sent = rest.subarray(PREFIX_BYTES, PREFIX_BYTES + length);
      rest = rest.subarray(PREFIX_BYTES + length);
      const isCompressed = (flag & COMPRESSED) !== 0;
      const bytes = isCompressed ? gunzipSync(sent) : sent;
      if (flag === TRAILERS) ending = readFields(readTrailerLines(bytes));
      else if ((flag & END_OF_STREAM) !== 0)
        ending = { ...readEndOfStream(bytes), ...(isCompressed && { isCompressed }) };
      else messages.push({ flag, message: readMessage(rpc, bytes, isJson) });
    }
    const isCut = rest.length > 0;
    return { messages, ...(ending !== undefined && { ending }), ...(isCut && { rest: rest.toString("hex") }) };
  }

  function readEndOfStream(bytes: Buffer): JsonObject {
    const { error, ...more } = readJson(bytes) as JsonObject;
    const read = readConnectError(error);
    return { ...more, ...(read !== undefined && { error: read }) };
  }

  function readBody(request: AnsweredRequest, { fields, body: sent }: WireResponse): JsonValue {
    const findValue = (name: string) => fields.find((field) => field[0] === name)?.[1];
    if (sent.length === 0) return null;
    const body = decompress(sent, findValue("content-encoding"));
    const type = findValue("content-type") ?? "";
    if (type.startsWith("application/grpc-web-text")) return readEnvelopes(type, decodeText(body), request.rpc);
    if (/^application\/(?:grpc|connect\+)/.test(type)) return readEnvelopes(type, body, request.rpc);
    if (type === "application/proto") return readMessage(request.rpc, body, false);
    if (/^application\/(?:[\w.+-]+\+)?json\b/.test(type)) return readConnectError(readJson(body)) ?? null;
    if (type === "application/x-ndjson") return body.toString().split("\n").map(parseLine);
    if (type === "text/event-stream")
      return body
        .toString()
        .split("\n")
        .map((line) => (line.startsWith("data: ") ? { data: parseLine(line.slice(6)) } : line));
    return body.toString();
  }

  return (request, response) => {
    const { end, connection, interim, status, body } = response;
    const fields = response.fields.filter(([name]) => name !== "content-length");
    const length = response.fields.find(([name]) => name === "content-length")?.[1];
    const isHead = request.method === "HEAD";
    const sent = safely(() => readBody(request, response), body);
    const ending = typeof sent === "object" && sent !== null && "ending" in sent ? sent.ending : undefined;
    const trailers = response.trailers && readFields(response.trailers);
    const read = readFields(fields);
    return {
      end,
      connection,
      ...(interim.length > 0 && { interim: [...interim] }),
      ...(status !== undefined && { status }),
      ...takeGrpcStatus({ fields: read, trailers, "last frame": ending as JsonObject | undefined }),
      fields: read,
      ...(length !== undefined && {
        length: isHead ? "announced" : Number(length) === body.length ? "right" : "wrong",
      }),
      body: sent,
      ...(trailers !== undefined && { trailers }),
    };
  };
}

// The status of gRPC, and where it stands: in another place it is still the same status.
function takeGrpcStatus(places: Readonly<Record<string, Record<string, JsonValue> | undefined>>): JsonObject {
  for (const [statusIn, fields] of Object.entries(places)) {
    if (fields?.["grpc-status"] === undefined) continue;
    const grpc: Record<string, JsonValue> = { statusIn };
    for (const name of ["grpc-status", "grpc-message", "grpc-status-details-bin"]) {
      if (fields[name] !== undefined) grpc[name] = fields[name];
      delete fields[name];
    }
    return { grpc };
  }
  return {};
}

function safely(read: () => JsonValue, body: Buffer): JsonValue {
  try {
    return read();
  } catch (error) {
    return { unreadable: String(error), bytes: body.toString("hex") };
  }
}

function readJson(bytes: Buffer): JsonValue {
  const text = bytes.toString();
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return { text };
  }
}

function parseLine(line: string): JsonValue {
  return line.startsWith("{") ? readJson(Buffer.from(line)) : line;
}

function decompress(body: Buffer, encoding: string | undefined): Buffer {
  if (encoding === "gzip") return gunzipSync(body);
  return encoding === "br" ? brotliDecompressSync(body) : body;
}

// Each frame may have its own padding.
function decodeText(body: Buffer): Buffer {
  const pieces = body.toString("latin1").match(/[\w+/]+=*/g) ?? [];
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64")));
}

function readTrailerLines(bytes: Buffer): Field[] {
  return bytes
    .toString("latin1")
    .split("\r\n")
    .filter((line) => line !== "")
    .map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]);
}
