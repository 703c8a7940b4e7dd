// The only way by which addresses that tenants give are fetched: it cannot be
// led to anything but public HTTPS servers, nor held up, nor filled.
import type { LookupAddress } from "node:dns";
import { lookup, Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { isPublicAddress } from "../kernel/ip-address.js";
import { exchange, type GuardedResponse, hostOf, Refusal } from "./http-request.js";
import { createSlots, type SlotLimits } from "./slots.js";

/** For the whole of a request, waiting for its turn and the last byte of the body included. */
const DEADLINE_MS = 5_000;
const MAX_BYTES = 100 * 1024;
const MAX_URL_LENGTH = 2048;
/** The operator's requests: each target, such as a login provider, is an account of its own. */
const OPERATOR: SlotLimits = {
  running: 100,
  runningPerAccount: 10,
  runningPerTarget: 10,
  waiting: 1_000,
  waitingPerAccount: 100,
};
/** The requests of organisations, each an account. Twenty that never get an answer leave most slots free. */
const ORGANISATIONS: SlotLimits = {
  running: 200,
  runningPerAccount: 4,
  runningPerTarget: 16,
  waiting: 1_000,
  waitingPerAccount: 32,
};

/** What the guard is told. */
export interface GuardedFetchOptions {
  /** Exact origins, such as `http://10.0.0.5:8080`, that may be cleartext, private or on another port. */
  readonly trustedOrigins: readonly string[];
  /** Issuers that the operator configured, whose metadata may name any trusted origin. */
  readonly operatorIssuers?: readonly string[];
  /** Told why a request was refused or failed: for the operator's log, and for nobody else. */
  readonly onRefused?: (reason: string) => void;
  /** How host names are resolved; by default the DNS, and for trusted origins whatever this machine asks. */
  readonly resolve?: Resolve;
}

/** What may be said of a request. */
export interface GuardedRequest {
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The longest body accepted, in bytes; 100 KiB by default. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
  /**
   * The issuer whose metadata name the address. They are written by strangers, so a trusted origin counts as
   * trusted only where the issuer is on it itself. Absent for addresses that no metadata name.
   */
  readonly issuer?: string;
  /**
   * The root group of the organisation whose provider or identity names the address. Its requests wait
   * for each other and for nobody else's. Absent for addresses that the operator configured.
   */
  readonly organisation?: string | undefined;
  /**
   * Whether the address was composed from unverified input that a pattern of the organisation admits.
   * Such requests have slots of their own, so that they delay none to addresses that are known.
   */
  readonly unproven?: boolean;
}

/**
 * Fetches from a server that is not known to be friendly. The body is whole, at most `maxBytes`, and
 * there within 5 s; redirects are not followed but refused.
 *
 * @throws FetchRefused for every failure alike
 */
export type GuardedFetch = (url: string, init?: GuardedRequest) => Promise<GuardedResponse>;

/** A request that was refused or failed. It does not say why, so that nobody can explore a network with it. */
export class FetchRefused extends Error {
  /** Whether it was never sent, because too many other requests of the same organisation were under way. */
  readonly isBusy: boolean;

  constructor(isBusy = false) {
    super("the address could not be fetched");
    this.name = "FetchRefused";
    this.isBusy = isBusy;
  }
}

/**
 * Makes a guarded fetch.
 *
 * @throws Error when a trusted origin is not written as one.
 */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { trustedOrigins, operatorIssuers = [], onRefused, resolve } = options;
  for (const origin of trustedOrigins) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin || !/^https?:/.test(origin))
      throw new Error(`a trusted origin must look like https://host:port, and ${origin} does not`);
  }
  const trusted: ReadonlySet<string> = new Set(trustedOrigins);
  const resolvePublic = dnsResolve();
  const ofOperator = createSlots(OPERATOR);
  const ofOrganisations = createSlots(ORGANISATIONS);

  function takeSlot({ origin }: URL, { organisation, unproven }: GuardedRequest, signal: AbortSignal) {
    if (organisation === undefined) return ofOperator.take(origin, origin, signal);
    return ofOrganisations.take(unproven ? `${organisation} unproven` : organisation, origin, signal);
  }

  function isTrustedFor({ origin }: URL, { issuer }: GuardedRequest): boolean {
    if (!trusted.has(origin)) return false;
    if (issuer === undefined || operatorIssuers.includes(issuer)) return true;
    return URL.canParse(issuer) && new URL(issuer).origin === origin;
  }

  async function guarded(
    url: URL,
    init: GuardedRequest,
    signal: AbortSignal,
    onSlot: () => void,
  ): Promise<GuardedResponse> {
    const giveBack = await takeSlot(url, init, signal);
    onSlot();
    try {
      const isTrusted = isTrustedFor(url, init);
      const addresses = await addressesOf(hostOf(url), resolve ?? (isTrusted ? hostResolve : resolvePublic), signal);
      if (addresses.length === 0) throw new Refusal("the host has no address");
      if (!isTrusted && !addresses.every(({ address }) => isPublicAddress(address)))
        throw new Refusal("the host has an address that is not public");
      const { method = "GET", headers = {}, body, maxBytes = MAX_BYTES } = init;
      return await exchange({ url, addresses, method, headers, body, maxBytes, signal });
    } finally {
      giveBack();
    }
  }

  return async (text, init = {}) => {
    const { signal, end } = startDeadline(init.signal);
    let origin = "no URL";
    let isWaiting = false;
    try {
      const url = urlOf(text);
      origin = `${url.protocol}//${url.host}`;
      checkUrl(url, isTrustedFor(url, init));
      isWaiting = true;
      return await guarded(url, init, signal, () => {
        isWaiting = false;
      });
    } catch (error) {
      onRefused?.(`${origin}: ${reasonOf(error, signal)}`);
      throw new FetchRefused(isWaiting);
    } finally {
      end();
    }
  };
}

/**
 * The guarded fetch in the form of `fetch`, for libraries that take one. Bodies may be strings, bytes or
 * forms; methods GET and POST.
 *
 * @param organisation on whose behalf all its requests are made; undefined: the operator's
 */
export function asFetch(guarded: GuardedFetch, organisation?: string): typeof fetch {
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
    const answer = await guarded(String(input), {
      method,
      headers: Object.fromEntries(headers),
      ...(sent !== undefined && { body: sent }),
      ...(signal && { signal }),
      organisation,
    });
    const { status, bytes } = answer;
    return new Response(bytes.length === 0 ? null : bytes, { status, headers: answer.headers });
  };
}

// Parsers drop or change some characters without a word; what was checked must be what is sent.
function urlOf(text: string): URL {
  if (text.length > MAX_URL_LENGTH) throw new Refusal("the address is too long");
  if (!/^[!-[\]-~]+$/.test(text)) throw new Refusal("the address has characters that URLs do not have");
  if (!URL.canParse(text)) throw new Refusal("it cannot be parsed");
  return new URL(text);
}

function checkUrl(url: URL, isTrusted: boolean): void {
  if (url.username !== "" || url.password !== "") throw new Refusal("the address has a user name or password");
  if (url.hash !== "") throw new Refusal("the address has a fragment");
  if (isTrusted) return;
  if (url.protocol !== "https:") throw new Refusal("the address is not https");
  if (url.port !== "") throw new Refusal("the port is not 443");
  if (url.hostname.endsWith(".")) throw new Refusal("the host ends with a dot");
}

function addressesOf(host: string, resolve: Resolve, signal: AbortSignal): Promise<readonly LookupAddress[]> {
  const family = isIP(host);
  if (family !== 0) return Promise.resolve([{ address: host, family }]);
  // Not every resolver can be called off; its answer is then not waited for.
  return new Promise((done, fail) => {
    signal.addEventListener("abort", () => fail(signal.reason), { once: true });
    resolve(host, signal).then(done, fail);
  });
}

// Not AbortSignal.any with AbortSignal.timeout: the collector may take such a signal before its time.
function startDeadline(outer: AbortSignal | undefined): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const abandon = () => controller.abort(new Refusal("the caller went away"));
  const timer = setTimeout(() => controller.abort(new Refusal("it took too long")), DEADLINE_MS);
  if (outer?.aborted) abandon();
  outer?.addEventListener("abort", abandon, { once: true });
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      outer?.removeEventListener("abort", abandon);
    },
  };
}

function reasonOf(error: unknown, signal: AbortSignal): string {
  const cause: unknown = signal.aborted ? signal.reason : error;
  if (cause instanceof Refusal) return cause.message;
  // The code of a socket or TLS error; its text may quote what the server sent.
  return cause instanceof Error && "code" in cause ? String(cause.code) : "it failed";
}

/** Finds the addresses of a host name; rejects or resolves to none when there are none. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

/** A try at a name server, in milliseconds, and how many there are. */
const QUERY_MS = 1_500;
const QUERY_TRIES = 2;

/**
 * Asks the DNS alone. Names that strangers choose must not wait in getaddrinfo: it runs on the few
 * threads that files and signatures need too, and cannot be called off.
 *
 * @param servers the name servers, as `address:port`; by default those of this machine.
 */
export function dnsResolve(servers?: readonly string[]): Resolve {
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

/** Asks as everything on this machine does, its hosts file included: for names that the operator chose. */
export const hostResolve: Resolve = (hostname) => lookup(hostname, { all: true });

function toLookupAddresses(result: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return result.status === "fulfilled" ? result.value.map((address) => ({ address, family })) : [];
}
