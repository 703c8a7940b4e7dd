// The Connect protocol: unary calls are plain requests of HTTP, with the status of their error, and may be a GET; streams
// have envelopes, and end with a message that has the error and the trailers.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { base64Decode } from "@bufbuild/protobuf/wire";
import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, endStreamFlag, errorToJson } from "@connectrpc/connect/protocol-connect";
import { invalidRequest } from "../../kernel/errors.js";
import type { CallContext } from "../../pipeline/call.js";
import type { MethodEntry, UnaryEntry } from "../../pipeline/method-table.js";
import { readRaw } from "../http/body-reader.js";
import { addFields, readConnectTimeout } from "../http/grpc-fields.js";
import { tooLarge } from "../http/inflate.js";
import type { Pieces } from "../http/list-pieces.js";
import type { Request } from "../http/request.js";
import { sendComplete } from "../http/response-writer.js";
import { inflateMessage, isGzip, sealWhole } from "./envelope.js";
import { Enveloped } from "./enveloped.js";
import { type Failure, statusFieldsOf } from "./failure.js";
import type { MessageCodec } from "./message-codec.js";
import type { Decode, Protocol } from "./protocol.js";
import { RpcForm, type RpcOptions } from "./rpc-form.js";

const NO_BYTES = new Uint8Array();

/** Unary calls of Connect, with one codec of messages. */
export class ConnectUnary extends RpcForm implements Protocol {
  readonly name = "connect";
  readonly fieldSpelling;
  protected readonly acceptField = "accept-encoding";

  constructor(codec: MessageCodec, options: RpcOptions) {
    super(codec, options);
    this.fieldSpelling = codec.isJson ? ("json" as const) : ("proto" as const);
  }

  check(fields: IncomingHttpHeaders): void {
    checkVersion(fields);
  }

  timeoutOf(fields: IncomingHttpHeaders): number | undefined {
    return readConnectTimeout(fields["connect-timeout-ms"]);
  }

  read(request: Request, { desc, maxRequestBytes }: MethodEntry): Decode | Promise<Decode> {
    const decode = (bytes: Uint8Array) => () => this.codec.decode(desc.input, bytes);
    if (request.method === "GET") {
      const { bytes, isEncoded } = readQuery(request.url);
      if (bytes.length > maxRequestBytes) throw tooLarge("message", maxRequestBytes);
      return isEncoded ? inflateMessage(request, bytes, maxRequestBytes).then(decode) : decode(bytes);
    }
    const isEncoded = isGzip("content-encoding", request.fields["content-encoding"]);
    if (!request.mayHaveBody) return decode(NO_BYTES);
    return readBody(request, maxRequestBytes, isEncoded).then(decode);
  }

  readStream(): never {
    throw new TypeError("unary calls of Connect take no stream");
  }

  answer(request: Request, call: CallContext, { desc }: UnaryEntry, response: object): void | Promise<void> {
    const body = this.codec.encode(desc.output, response);
    const bytes = Buffer.byteLength(body);
    if (this.compresses(request, bytes)) {
      request.chargeResponse(bytes);
      return this.sendCharged(request, call, { pieces: [Buffer.from(body)], bytes });
    }
    const fields = this.#headOf(call, false);
    fields["content-length"] = bytes;
    sendComplete(request, 200, fields, body);
  }

  protected async sendPieces(
    request: Request,
    call: CallContext,
    message: Pieces,
    isCompressed: boolean,
  ): Promise<void> {
    const fields = this.#headOf(call, isCompressed);
    fields["content-length"] = message.bytes;
    request.writeHead(200, fields, "pieces");
    for (const piece of message.pieces) await request.writeCharged(piece);
    request.end();
  }

  answerStream(): never {
    throw new TypeError("unary calls of Connect have one response");
  }

  fail(request: Request, call: CallContext | undefined, failure: Failure): void {
    if (request.headersSent) {
      request.abort();
      return;
    }
    const { error } = failure;
    const fields: OutgoingHttpHeaders = { ...failure.fields, ...statusFieldsOf(failure, request) };
    addFields(fields, error.metadata);
    addCallFields(fields, call);
    const body = formatError(error);
    fields["content-type"] = "application/json";
    fields["content-length"] = Buffer.byteLength(body);
    fields["cache-control"] = "no-store";
    sendComplete(request, codeToHttpStatus(error.code), fields, body);
  }

  #headOf(call: CallContext, isCompressed: boolean): OutgoingHttpHeaders {
    const fields: OutgoingHttpHeaders = {
      "content-type": this.codec.isJson ? "application/json" : "application/proto",
    };
    if (isCompressed) fields["content-encoding"] = "gzip";
    addCallFields(fields, call);
    return fields;
  }
}

/** Streams of Connect, with one codec of messages. */
export class ConnectStream extends Enveloped {
  readonly name = "connect";
  readonly fieldSpelling;
  protected readonly encodingField = "connect-content-encoding";
  protected readonly acceptField = "connect-accept-encoding";
  protected readonly afterHead = "pieces";

  constructor(codec: MessageCodec, options: RpcOptions) {
    super(codec, options);
    this.fieldSpelling = codec.isJson ? ("json" as const) : ("proto" as const);
  }

  check(fields: IncomingHttpHeaders): void {
    checkVersion(fields);
  }

  timeoutOf(fields: IncomingHttpHeaders): number | undefined {
    return readConnectTimeout(fields["connect-timeout-ms"]);
  }

  protected typeOf(): string {
    return this.codec.isJson ? "application/connect+json" : "application/connect+proto";
  }

  // A call with one response is none of streams.
  protected sendOne(): never {
    throw new TypeError("streams of Connect have no single response");
  }

  protected async finish(request: Request, call: CallContext | undefined, failure?: Failure): Promise<void> {
    const end = encodeEnd(call, failure?.error);
    request.chargeResponse(end.length);
    await request.writeCharged(end);
    request.end();
  }

  fail(request: Request, call: CallContext | undefined, failure: Failure): void | Promise<void> {
    if (request.headersSent) {
      request.discardBody();
      return this.finish(request, call, failure);
    }
    const fields = { ...failure.fields, ...this.headOf(request, call, false) };
    sendComplete(request, 200, fields, encodeEnd(call, failure.error));
  }
}

function checkVersion({ "connect-protocol-version": version }: IncomingHttpHeaders): void {
  if (version !== undefined && version !== "1") throw invalidRequest("connect-protocol-version must be 1");
}

async function readBody(request: Request, maxBytes: number, isEncoded: boolean): Promise<Uint8Array> {
  const bytes = await readRaw(request, maxBytes);
  request.record.bytesIn ??= bytes.length;
  return isEncoded ? inflateMessage(request, bytes, maxBytes) : bytes;
}

// The message of a GET is in its query, the key of caches.
function readQuery(url: string): { readonly bytes: Uint8Array; readonly isEncoded: boolean } {
  const query = new URLSearchParams(url.slice(url.indexOf("?") + 1));
  const isEncoded = isGzip("content-encoding", query.get("compression") ?? undefined);
  const message = query.get("message") ?? "";
  if (query.get("base64") !== "1") return { bytes: Buffer.from(message), isEncoded };
  try {
    return { bytes: base64Decode(message), isEncoded };
  } catch {
    throw invalidRequest("message must be base64");
  }
}

// Trailers have the prefix `trailer-` (Connect protocol, "Unary-Response").
function addCallFields(fields: OutgoingHttpHeaders, call: CallContext | undefined): void {
  addFields(fields, call?.responseHeaderIfSet);
  addFields(fields, call?.responseTrailerIfSet, "trailer-");
}

// The last message of a stream (Connect protocol, "Streaming-Response").
function encodeEnd(call: CallContext | undefined, error: ConnectError | undefined): Buffer {
  const metadata: Record<string, readonly string[]> = {};
  for (const from of [call?.responseTrailerIfSet, error?.metadata]) {
    for (const [name, value] of Object.entries(addFields({}, from)))
      metadata[name] = Array.isArray(value) ? value : [String(value)];
  }
  const end = {
    ...(error !== undefined && { error: errorToJson(error, undefined) }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  };
  return sealWhole(endStreamFlag, Buffer.from(JSON.stringify(end)));
}

/** Formats an error as Connect does ("Error JSON"). */
export function formatError(error: ConnectError): string {
  return JSON.stringify(errorToJson(error, undefined));
}
