// Requests without a server: of Node's own servers, and of no connection at all.
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { Socket } from "node:net";
import type { RequestObserver } from "../../src/telemetry/request-record.js";
import { Http1Request } from "../../src/transport/http/http1-request.js";
import { Http2Request } from "../../src/transport/http/http2-request.js";
import { type Budgets, createBudgets } from "../../src/transport/http/limits/budgets.js";
import { Connection } from "../../src/transport/http/limits/connection.js";
import { defaultLimits } from "../../src/transport/http/limits/limits.js";
import type { TrustedProxies } from "../../src/transport/http/peer-address.js";
import { createRecords } from "../../src/transport/http/records.js";
import { Request, type RequestHandlers, type RequestHost } from "../../src/transport/http/request.js";

const ADDRESS = "192.0.2.1";

/** A connection that no server has accepted. */
export function newConnection(key = ADDRESS): Connection {
  return new Connection(new Socket(), { key, address: key, isProxy: false, rejection: undefined });
}

/** What a request is given, without other requests. */
export function newHost(budgets: Budgets = createBudgets(defaultLimits)): RequestHost & RequestHandlers {
  return {
    budgets,
    maxWaitMs: 5_000,
    limits: defaultLimits,
    takesStream: () => false,
    waitAgain: (_request, run) => run(),
    chargeRead() {},
    onClose() {},
    handle() {},
    refuse() {},
    onError() {},
  };
}

function begin<R extends Request>(request: R, observers: readonly RequestObserver[] = [], proxies?: TrustedProxies): R {
  createRecords({ proxies, observers, identify() {} }).begin(request);
  return request;
}

/** A request of one of Node's servers of HTTP/1.1 that has begun. */
export function beginHttp1(
  message: IncomingMessage,
  response: ServerResponse,
  observers: readonly RequestObserver[] = [],
  proxies?: TrustedProxies,
): Http1Request {
  return begin(new Http1Request(message, response, ADDRESS, newConnection(), newHost()), observers, proxies);
}

/** A stream of one of Node's servers of HTTP/2 that has begun. */
export function beginHttp2(
  stream: ServerHttp2Stream,
  fields: IncomingHttpHeaders,
  rawFields: readonly string[] = [],
  budgets?: Budgets,
  proxies?: TrustedProxies,
): Http2Request {
  const address = stream.session?.socket.remoteAddress;
  const request = new Http2Request(stream, fields, rawFields, address, ADDRESS, newConnection(), newHost(budgets));
  return begin(request, [], proxies);
}

/** A request that came by no connection, of which only the charges are used. */
export class ChargedRequest extends Request {
  readonly method = "POST";
  readonly url = "/";
  readonly fields = {};
  readonly rawFields = [];
  readonly httpVersion = "2";
  readonly socketAddress = ADDRESS;
  readonly mayHaveBody = false;
  protected readonly isBodyComplete = true;
  isCutOff = false;
  #isGone: () => boolean;

  constructor(
    key: string,
    host: RequestHost | Budgets,
    connection = newConnection(key),
    isGone: () => boolean = () => false,
  ) {
    super(key, Number.POSITIVE_INFINITY, connection, "budgets" in host ? { ...newHost(), ...host } : newHost(host));
    this.#isGone = isGone;
  }

  get body(): never {
    throw new TypeError("there is no body");
  }

  protected get sink(): never {
    throw new TypeError("there is no response");
  }

  override get isGone(): boolean {
    return this.#isGone();
  }

  discardBody(): void {}
  protected sendHead(_status: number, _fields: OutgoingHttpHeaders): void {}
  sendWhole(): void {}
  endWithTrailers(): void {}
  abort(): void {}

  cutOff(): void {
    this.isCutOff = true;
  }

  /** Ends it. */
  finish(): void {
    this.close(200, true);
  }
}
