// Fetches URLs that tenants configure. Requests reach public HTTPS servers only (SSRF protection), and are bounded in
// time and size.
import type { LookupAddress } from "node:dns";
import { lookup, Resolver } from "node:dns/promises";
import { type BlockList, isIP } from "node:net";
import { createSecureContext, rootCertificates } from "node:tls";
import { isPublicAddress } from "../kernel/ip-address.js";
import { describePrivateUrl } from "../kernel/public-url.js";
import type { StartRequest, TraceSpan } from "../kernel/trace.js";
import { hostOf, KeptConnections, type Route } from "./connections.js";
import { type GuardedResponse, type OutboundMessage, sendRequest } from "./http-request.js";
import { ClientCertificateError, OutboundError } from "./outbound-error.js";
import { createSlots, type SlotLimits } from "./slots.js";

/** The deadline of a whole request in milliseconds, until the last byte of the body. */
const DEADLINE_MS = 5_000;
const MAX_BYTES = 100 * 1024;
const MAX_URL_LENGTH = 2048;
/** Requests of the operator: each target, such as a login provider, has its own share. */
const OPERATOR: SlotLimits = {
  running: 100,
  runningPerAccount: 10,
  runningPerTarget: 10,
  waiting: 1_000,
  waitingPerAccount: 100,
};
/**
 * Requests of organisations: each has its own share. Twenty organisations whose requests hang leave most slots free.
 */
const ORGANISATIONS: SlotLimits = {
  running: 200,
  runningPerAccount: 4,
  runningPerTarget: 16,
  leavesFree: true,
  waiting: 1_000,
  waitingPerAccount: 32,
};

export interface GuardedFetchOptions {
  /** Exact origins, such as `http://10.0.0.5:8080`, that may use cleartext, private addresses or another port. */
  readonly trustedOrigins: readonly string[];
  /** Issuers that the operator configured; their metadata may name any trusted origin. */
  readonly operatorIssuers?: readonly string[];
  /**
   * The HTTP proxy for all requests but those to trusted origins. It resolves the names of hosts, so only names and
   * addresses that are written in URLs are checked here.
   */
  readonly proxy?: string | undefined;
  /** Called with the reason of every failure, for the operator's log only. */
  readonly onFailure?: (reason: string) => void;
  /** Resolves host names; the default is the DNS, and for trusted origins the resolver of the system. */
  readonly resolve?: Resolve;
  /** Begins the spans of requests that belong to no call; without it they have none. */
  readonly startRequest?: StartRequest | undefined;
  /** Networks whose servers may have private addresses and other ports, over https alone. */
  readonly trustedNetworks?: BlockList | undefined;
  /** Authorities in PEM that may sign the certificates of trusted origins and networks as well. */
  readonly ca?: string | undefined;
  /** How many connections wait for the next request to their origin; without it none is kept. For https alone. */
  readonly maxKept?: number;
  /** The limits of requests of organisations, and of those of them that are unproven, if these have their own. */
  readonly slots?: SlotLimits;
  readonly unprovenSlots?: SlotLimits;
  /** The deadline of a request, see {@link DEADLINE_MS}. */
  readonly deadlineMs?: number;
}

export interface GuardedRequest {
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /**
   * Makes fields and body in place of those when the request has its slot, and again where it is repeated because a kept
   * connection was lost: for what may be sent once. The deadline begins afterwards. Its errors are thrown as they are.
   */
  readonly prepare?: () => Promise<OutboundMessage>;
  /**
   * How long the request may wait for a slot, in milliseconds or without an end, apart from its deadline. By default the
   * deadline includes it.
   */
  readonly maxWaitMs?: number | "unlimited";
  /** The longest accepted body, in bytes; 100 KiB by default. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
  /**
   * The issuer whose metadata contain the URL. Others write the metadata, so a trusted origin is trusted only if the
   * issuer is on the same origin. Absent for URLs that are in no metadata.
   */
  readonly issuer?: string;
  /**
   * Whether the URL is that of the issuer's keys. They may be on another trusted origin than the issuer if its own is
   * trusted as well: the API server of a Kubernetes cluster names its address there. Nothing but the request reaches it.
   */
  readonly forKeys?: boolean;
  /**
   * The root group of the organisation whose provider or identity has the URL. Its requests wait for each other only.
   * Absent for URLs of the operator.
   */
  readonly organisation?: string | undefined;
  /**
   * Whether the URL was built from unverified input that matches a pattern of the organisation, or has failed last. Such
   * requests have their own slots, so that they do not delay requests to known URLs.
   */
  readonly unproven?: boolean;
  /** The span that the request is part of. */
  readonly trace?: TraceSpan | undefined;
  /**
   * Whether only status and fields of the response count: redirects are responses then, the body is dropped, and of a status
   * of 2xx nothing else counts, not even the fields.
   */
  readonly dropsBody?: boolean;
}

/**
 * Fetches from an untrusted server. The body has at most `maxBytes`, everything that the server sends for it at most 16 KiB
 * more, and all arrives within 5 s; redirects are errors. Only servers that the operator named, as trusted origins or issuers, learn the trace of the request.
 *
 * @throws GuardedFetchError for every failure
 */
export type GuardedFetch = (url: string, init?: GuardedRequest) => Promise<GuardedResponse>;

/**
 * A failed request. It tells little of the reason, so that callers cannot explore a network with it: only that there was no
 * response in time, or that a server which may be connected to has a certificate that is not valid, or wants one.
 */
export class GuardedFetchError extends Error {
  /** Whether it was not sent because too many other requests of the same organisation were running. */
  readonly isBusy: boolean;
  readonly kind: FailureKind | undefined;

  constructor(isBusy = false, kind?: FailureKind) {
    super("the address could not be fetched");
    this.name = "GuardedFetchError";
    this.isBusy = isBusy;
    this.kind = kind;
  }
}

/** `client-certificate`: the server wants to know its client by one. */
export type FailureKind = "late" | "certificate" | "client-certificate";

/**
 * Creates a guarded fetch.
 *
 * @throws Error when a trusted origin is malformed
 */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { trustedOrigins, operatorIssuers = [], trustedNetworks, ca, maxKept, onFailure, resolve } = options;
  const { deadlineMs = DEADLINE_MS } = options;
  for (const origin of trustedOrigins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin || !/^https?:/.test(origin))
      throw new Error(`a trusted origin must look like https://host:port, and ${origin} does not`);
  }
  const trusted: ReadonlySet<string> = new Set(trustedOrigins);
  const traced = findTracedOrigins(options);
  const proxy = options.proxy === undefined ? undefined : new URL(options.proxy);
  const resolvePublic = createDnsResolver();
  const operatorSlots = createSlots(OPERATOR);
  const organisationSlots = createSlots(options.slots ?? ORGANISATIONS);
  const unprovenSlots = options.unprovenSlots ? createSlots(options.unprovenSlots) : organisationSlots;
  const authorities =
    ca === undefined ? undefined : createSecureContext({ ca: [...rootCertificates, ca], minVersion: "TLSv1.2" });
  const kept = maxKept === undefined ? undefined : new KeptConnections(maxKept);

  function takeSlot({ origin }: URL, { organisation, unproven }: GuardedRequest, signal: AbortSignal) {
    if (organisation === undefined) return operatorSlots.acquire(origin, origin, signal);
    if (unproven) return unprovenSlots.acquire(`${organisation} unproven`, origin, signal);
    return organisationSlots.acquire(organisation, origin, signal);
  }

  function isTrustedFor({ origin }: URL, { issuer, forKeys = false }: GuardedRequest): boolean {
    if (!trusted.has(origin)) return false;
    if (issuer === undefined || operatorIssuers.includes(issuer)) return true;
    if (!URL.canParse(issuer)) return false;
    const own = new URL(issuer).origin;
    return own === origin || (forKeys && trusted.has(own));
  }

  async function findRoute(url: URL, isTrusted: boolean, signal: AbortSignal): Promise<Route> {
    const host = hostOf(url);
    if (!isTrusted && trustedNetworks !== undefined) {
      const addresses = await resolveAddresses(host, resolve ?? resolvePublic, signal);
      if (addresses.length > 0 && addresses.every((one) => isInNetwork(one, trustedNetworks)))
        return { addresses, authorities };
    }
    if (!isTrusted) assertPublicUrl(url);
    if (proxy !== undefined && !isTrusted) {
      if (isIP(host) === 0 ? isLocalName(host) : !isPublicAddress(host))
        throw new OutboundError("the host is not public");
      return { addresses: [], proxy };
    }
    const addresses = await resolveAddresses(host, resolve ?? (isTrusted ? systemResolve : resolvePublic), signal);
    if (addresses.length === 0) throw new OutboundError("the host has no address");
    if (!isTrusted && !addresses.every(({ address }) => isPublicAddress(address)))
      throw new OutboundError("the host has an address that is not public");
    return { addresses, ...(isTrusted && { authorities }) };
  }

  /** @param release gives the slot back, once the response is read or dropped */
  async function sendGuarded(
    url: URL,
    init: GuardedRequest,
    deadline: Deadline,
    release: () => void,
  ): Promise<GuardedResponse> {
    const { method = "GET", headers = {}, body, prepare, maxBytes = MAX_BYTES, dropsBody, organisation, trace } = init;
    const { signal } = deadline;
    const isTrusted = isTrustedFor(url, init);
    const traceHeaders = traced.has(url.origin) ? trace?.headers() : undefined;
    const make = async (): Promise<OutboundMessage> => {
      const message = prepare === undefined ? { headers, body } : await prepare().catch(PreparationError.throw);
      return { headers: { ...message.headers, ...traceHeaders }, body: message.body };
    };
    try {
      const message = await make();
      if (init.maxWaitMs !== undefined) deadline.begin(deadlineMs);
      const { response, closed } = await sendRequest({
        ...{ url, method, message, remake: make, dropsBody, signal },
        allowance: { account: organisation ?? url.origin, maxBytes },
        findRoute: () => findRoute(url, isTrusted, signal),
        kept: url.protocol === "https:" ? kept : undefined,
      });
      if (dropsBody) void closed.then(release);
      else release();
      return response;
    } catch (error) {
      release();
      throw error;
    }
  }

  return async (text, init = {}) => {
    const deadline = new Deadline(init.signal);
    const { signal } = deadline;
    let origin = "no URL";
    let isWaiting = false;
    let trace: TraceSpan | undefined;
    try {
      const url = parseUrl(text);
      origin = `${url.protocol}//${url.host}`;
      assertAllowedUrl(url);
      if (!isTrustedFor(url, init)) {
        // Other ports are for networks, which the addresses of the host decide.
        if (trustedNetworks === undefined) assertPublicUrl(url);
        else if (url.protocol !== "https:") throw new OutboundError("the address is not https");
      }
      trace = startSpan(url, init, options.startRequest);
      isWaiting = true;
      deadline.begin(init.maxWaitMs ?? deadlineMs);
      const release = await takeSlot(url, init, signal);
      isWaiting = false;
      trace?.addEvent("begin");
      const response = await sendGuarded(url, { ...init, trace }, deadline, release);
      trace?.setAttributes({ "http.response.status_code": response.status });
      if (response.status < 400) trace?.end();
      else trace?.fail({ code: String(response.status) });
      return response;
    } catch (error) {
      trace?.fail(error);
      if (error instanceof PreparationError) throw error.cause;
      onFailure?.(`${origin}: ${describeFailure(error, signal)}`);
      throw new GuardedFetchError(isWaiting, classifyFailure(error, signal));
    } finally {
      deadline.end();
    }
  };
}

/**
 * The origins whose servers learn the trace of a request: those that the operator named. For the servers of tenants it
 * would have no use, and the caller may have put something of its own into the fields.
 */
export function findTracedOrigins({
  trustedOrigins,
  operatorIssuers = [],
}: Pick<GuardedFetchOptions, "trustedOrigins" | "operatorIssuers">): ReadonlySet<string> {
  const issuers = operatorIssuers.filter((issuer) => URL.canParse(issuer)).map((issuer) => new URL(issuer).origin);
  return new Set([...trustedOrigins, ...issuers]);
}

/**
 * Adapts a guarded fetch to the signature of `fetch`, for libraries. It supports GET and POST, and bodies of strings,
 * bytes or forms.
 *
 * @param organisation the organisation of all its requests; undefined for the operator
 */
export function toFetch(guarded: GuardedFetch, organisation?: string): typeof fetch {
  return async (input, init = {}) => {
    const { body, signal } = init;
    const method = init.method?.toUpperCase() ?? "GET";
    if (method !== "GET" && method !== "POST") throw new TypeError("only GET and POST can be guarded");
    if (typeof input !== "string" && !(input instanceof URL)) throw new TypeError("only URLs can be guarded");
    const headers = new Headers(init.headers);
    let sent: string | Uint8Array | undefined;
    if (typeof body === "string" || body instanceof Uint8Array) sent = body;
    else if (body instanceof URLSearchParams) {
      sent = body.toString();
      if (!headers.has("content-type")) headers.set("content-type", "application/x-www-form-urlencoded;charset=UTF-8");
    } else if (body) throw new TypeError("only text, bytes and forms can be guarded");
    const response = await guarded(String(input), {
      method,
      headers: Object.fromEntries(headers),
      ...(sent !== undefined && { body: sent }),
      ...(signal && { signal }),
      organisation,
    });
    const { status, bytes } = response;
    return new Response(bytes.length === 0 ? null : bytes, { status, headers: response.headers });
  };
}

// Leaves out path and query, because they may have the uid of a tenant or a signature.
function startSpan(
  { protocol, hostname, port }: URL,
  { method = "GET", trace }: GuardedRequest,
  startRequest: StartRequest | undefined,
): TraceSpan | undefined {
  const start = trace === undefined ? startRequest : trace.startRequest.bind(trace);
  return start?.(method, {
    "http.request.method": method,
    "url.scheme": protocol.slice(0, -1),
    "server.address": hostname,
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
  });
}

// URL parsers drop or change some characters silently, and the checked URL must be the one that is requested.
function parseUrl(text: string): URL {
  if (text.length > MAX_URL_LENGTH) throw new OutboundError("the address is too long");
  if (!/^[!-[\]-~]+$/.test(text)) throw new OutboundError("the address has characters that URLs do not have");
  if (!URL.canParse(text)) throw new OutboundError("it cannot be parsed");
  return new URL(text);
}

function assertAllowedUrl(url: URL): void {
  if (url.username !== "" || url.password !== "") throw new OutboundError("the address has a user name or password");
  if (url.hash !== "") throw new OutboundError("the address has a fragment");
}

function isInNetwork({ address, family }: LookupAddress, networks: BlockList): boolean {
  return isIP(address) !== 0 && networks.check(address, family === 6 ? "ipv6" : "ipv4");
}

function assertPublicUrl(url: URL): void {
  const reason = describePrivateUrl(url);
  if (reason !== undefined) throw new OutboundError(reason);
}

// Names that are not in the public DNS (RFC 6761, 6762 and 8375; those that ICANN keeps for private networks, and those
// that networks use without asking). A name without a dot is completed by the resolver of whoever looks it up.
const LOCAL_NAME =
  /^[^.]*$|(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|svc|home\.arpa)$/;

function isLocalName(host: string): boolean {
  return LOCAL_NAME.test(host);
}

function resolveAddresses(host: string, resolve: Resolve, signal: AbortSignal): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  if (family !== 0) return Promise.resolve([{ address: host, family }]);
  // Some resolvers cannot be cancelled; their response is ignored.
  return new Promise((done, fail) => {
    signal.addEventListener("abort", () => fail(signal.reason), { once: true });
    resolve(host, signal).then(done, fail);
  });
}

// AbortSignal.any with AbortSignal.timeout can be garbage-collected before it fires.
class Deadline {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #abandon = () => this.#controller.abort(new OutboundError("the caller went away"));

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted) this.#abandon();
    outer?.addEventListener("abort", this.#abandon, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts the signal after a time from now on, in milliseconds, and no more after the time before. */
  begin(ms: number | "unlimited"): void {
    clearTimeout(this.#timer);
    if (ms === "unlimited") return;
    this.#timer = setTimeout(() => this.#controller.abort(new OutboundError(TOO_LONG)), ms);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#abandon);
  }
}

// An error that has nothing to do with the server.
class PreparationError extends Error {
  static throw(this: void, cause: unknown): never {
    throw new PreparationError("the request could not be prepared", { cause });
  }
}

const TOO_LONG = "it took too long";
// The codes of Node for certificates that are not accepted.
const CERTIFICATE = /CERT|ALTNAME|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/;

function classifyFailure(error: unknown, signal: AbortSignal): FailureKind | undefined {
  if (error instanceof ClientCertificateError) return "client-certificate";
  const described = describeFailure(error, signal);
  if (described === TOO_LONG) return "late";
  return CERTIFICATE.test(described) ? "certificate" : undefined;
}

function describeFailure(error: unknown, signal: AbortSignal): string {
  const cause: unknown = signal.aborted ? signal.reason : error;
  if (cause instanceof OutboundError) return cause.message;
  // The code of a socket or TLS error only; its text may quote the server.
  return cause instanceof Error && "code" in cause ? String(cause.code) : "it failed";
}

/** Resolves the addresses of a host name; rejects or resolves to none when it has none. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

/** The timeout of a DNS query in milliseconds, and the number of attempts. */
const QUERY_MS = 1_500;
const QUERY_TRIES = 2;

/**
 * Creates a resolver that uses the DNS only. Names from tenants must not use getaddrinfo, which blocks threads that
 * files and signatures need, and cannot be cancelled.
 *
 * @param servers the name servers as `address:port`; by default those of the system
 */
export function createDnsResolver(servers?: readonly string[]): Resolve {
  return async (hostname, signal) => {
    const resolver = new Resolver({ timeout: QUERY_MS, tries: QUERY_TRIES });
    if (servers) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
      return [...toLookupAddresses(four, 4), ...toLookupAddresses(six, 6)];
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  };
}

/** Resolves with the system, including its hosts file, for names that the operator configured. */
export const systemResolve: Resolve = (hostname) => lookup(hostname, { all: true });

function toLookupAddresses(result: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return result.status === "fulfilled" ? result.value.map((address) => ({ address, family })) : [];
}
