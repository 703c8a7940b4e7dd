// JSON over HTTP, by the rules of google.api.http.
import type { IncomingHttpHeaders } from "node:http";
import { formatError, httpStatusOf } from "../../codec/error-json.js";
import type { MessageWriters } from "../../codec/json-wkt.js";
import { invalidArgument } from "../../kernel/errors.js";
import type { CallContext, UnaryCall } from "../../pipeline/call.js";
import type { MethodEntry, UnaryEntry } from "../../pipeline/method-table.js";
import { isEmptyBody, readBody, readFormText } from "../http/body-reader.js";
import { compress, isLarge } from "../http/content-negotiation.js";
import type { HttpBinding } from "../http/http-binding.js";
import { streamList } from "../http/list-pieces.js";
import type { Request } from "../http/request.js";
import { copyHeaders, headersOf, type ResponseHeaders, send } from "../http/send.js";
import { type Failure, statusFieldsOf } from "./failure.js";
import type { Decode, Protocol } from "./protocol.js";
import { restMetadataOf, restTimeoutOf } from "./rest-fields.js";
import { RAW_FIELDS, type ReadBody, type RestRoute } from "./rest-route.js";
import { sendStream, streamFormatOf } from "./rest-stream.js";

const JSON_TYPE = "application/json";

/** What REST is before a route is known: the form of errors. */
abstract class RestForm {
  readonly name = "rest";
  readonly fieldSpelling = "json";
  protected abstract readonly details: MessageWriters;

  timeoutOf(fields: IncomingHttpHeaders): number | undefined {
    return restTimeoutOf(fields);
  }

  metadataOf(fields: IncomingHttpHeaders): Headers {
    return restMetadataOf(fields);
  }

  fail(request: Request, call: CallContext | undefined, failure: Failure): void {
    const { error } = failure;
    const headers: ResponseHeaders = call === undefined ? {} : headersOf(call);
    copyHeaders(error.metadata, headers);
    Object.assign(headers, failure.fields, statusFieldsOf(failure, request));
    send(request, failure.status ?? httpStatusOf(error.code), headers, JSON_TYPE, formatError(error, this.details));
  }
}

/** Errors over REST of requests without a route. */
export class RestErrors extends RestForm implements Protocol {
  protected readonly details: MessageWriters;

  constructor(details: MessageWriters) {
    super();
    this.details = details;
  }

  read(): never {
    throw new TypeError("a request without a route is no call");
  }

  readStream = this.read;
  answer = this.read;
  answerList = this.read;
  answerStream = this.read;
}

const NO_BODY: ReadBody = { bytes: new Uint8Array(), contentType: undefined };

/** One call over REST. */
export class Rest extends RestForm implements Protocol {
  readonly #route: RestRoute;
  readonly #captures: readonly string[];
  readonly #query: string;

  constructor(route: RestRoute, captures: readonly string[], query: string) {
    super();
    this.#route = route;
    this.#captures = captures;
    this.#query = query;
  }

  protected get details(): MessageWriters {
    return this.#route.details;
  }

  read(request: Request): Decode | Promise<Decode> {
    return request.mayHaveBody ? this.#readBody(request) : this.#decoder(this.#query, NO_BODY);
  }

  async #readBody(request: Request): Promise<Decode> {
    const { binding, maxBytes } = this.#route;
    if (isForm(request, binding)) {
      const form = await readFormText(request, maxBytes);
      return this.#decoder(`${this.#query}&${form}`, NO_BODY);
    }
    if (binding.body !== "none") {
      const bytes = await readBody(request, maxBytes);
      return this.#decoder(this.#query, { bytes, contentType: request.fields["content-type"] });
    }
    // Clients that always send JSON send `{}` for a rule without a body.
    if (await isEmptyBody(request)) return this.#decoder(this.#query, NO_BODY);
    throw invalidArgument({ field: "body", rule: "must be empty, this request takes none" });
  }

  #decoder(query: string, body: ReadBody): Decode {
    return () => this.#route.decode(this.#captures, query, body);
  }

  readStream(): never {
    throw new TypeError("JSON over HTTP has no streams of requests");
  }

  answer(request: Request, call: CallContext, _entry: UnaryEntry, response: object): void | Promise<void> {
    const { contentType, body } = this.#route.encode(response);
    const headers = typeof body === "string" ? headersOf(call) : { ...RAW_FIELDS, ...headersOf(call) };
    if (!isLarge(body)) {
      send(request, 200, headers, contentType, body);
      return;
    }
    return compress(body, contentType, request.header("accept-encoding"), headers).then((sent) =>
      send(request, 200, headers, contentType, sent),
    );
  }

  // Each chunk is sent when it is read. A list of one chunk is sent as any other response is.
  async answerList(
    request: Request,
    call: UnaryCall,
    entry: UnaryEntry,
    chunks: AsyncGenerator<object, void, void>,
  ): Promise<void> {
    try {
      const first = await chunks.next();
      if (first.done === true || request.isGone) return;
      const encoder = call.nextCursor === undefined ? undefined : this.#route.createListEncoder?.();
      if (encoder === undefined) await this.answer(request, call, entry, first.value);
      else {
        const headers = { ...headersOf(call), "content-type": JSON_TYPE };
        await streamList({ request, headers, first: first.value, chunks, encoder });
      }
    } finally {
      // Ends the list, because the number of a caller's concurrent lists is limited.
      await chunks.return();
    }
  }

  answerStream(request: Request, call: CallContext, _entry: MethodEntry, messages: AsyncIterable<object>) {
    const { encodeMessage, heartbeatMs } = this.#route;
    const format = streamFormatOf(request, encodeMessage);
    return sendStream(request, messages, format, () => headersOf(call), heartbeatMs);
  }

  override fail(request: Request, call: CallContext | undefined, failure: Failure): void {
    if (!request.headersSent) {
      super.fail(request, call, failure);
      return;
    }
    // A response that has begun ends with the error where it has room for it, and is aborted, so that it does not look
    // complete.
    const { binding, encodeMessage } = this.#route;
    const text = formatError(failure.error, this.details);
    const isStream = binding.entry.kind !== "unary";
    request.breakOff(isStream ? streamFormatOf(request, encodeMessage).failure(text) : "");
  }
}

// A POST whose rule has no body may have its parameters in a form, as OAuth clients send them.
function isForm({ method, fields }: Request, { body }: HttpBinding): boolean {
  if (body !== "none" || method !== "POST") return false;
  const [type = ""] = (fields["content-type"] ?? "").split(";");
  return type.trim().toLowerCase() === "application/x-www-form-urlencoded";
}
