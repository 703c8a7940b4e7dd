// Browser login for tests: the real routes on a real socket, with a real store, a
// real OpenID Provider, and a browser reduced to cookies and redirects.
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { openInstallation } from "../../../src/app/installation.js";
import { resolveSettings } from "../../../src/config/config.js";
import { createInviteCode } from "../../../src/iam/group-invites/group-invite.js";
import { bootstrap } from "../../../src/iam/operator/bootstrap.js";
import { createLastSeen } from "../../../src/issuer/maintenance.js";
import type { LoginDeps } from "../../../src/issuer/oauth/context.js";
import { createIdTokens } from "../../../src/issuer/oauth/id-tokens.js";
import type { SecretMethod } from "../../../src/issuer/oauth/provider-selection.js";
import { createLoginRoutes } from "../../../src/issuer/oauth/routes.js";
import { createTickets } from "../../../src/issuer/oauth/tickets.js";
import { isOwnUrl } from "../../../src/issuer/sts/audience.js";
import { createExchanger } from "../../../src/issuer/sts/exchange.js";
import { createFailureLimiter, noFailureNews } from "../../../src/issuer/sts/failure-limiter.js";
import { createFailureThrottle } from "../../../src/issuer/sts/failure-throttle.js";
import { createTokens } from "../../../src/issuer/tokens.js";
import { createIssuers } from "../../../src/issuer/upstream/issuers.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { defaultLimits } from "../../../src/kernel/quotas.js";
import { createGuardedFetch } from "../../../src/outbound/guarded-fetch.js";
import { createQuotas } from "../../../src/pipeline/resource/quota.js";
import { groupInviteKind } from "../../../src/store/iam/group-invites.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import type { Store } from "../../../src/store/store.js";
import { createWeb } from "../../../src/transport/http/web-routes.js";
import { newDataDir } from "../../support/data-dir.js";
import { type OidcAccount, type OidcProvider, startOidcProvider } from "../../support/oidc-provider.js";
import { beginHttp1 } from "../../transport/requests.js";
import { MAX_LIFE_S } from "../upstream/foreign-issuer.js";

const PLENTY = { points: 1000, seconds: 1 };

/** The redirect URI of programs; nothing listens there, because the tests do not follow it. */
export const PROGRAM = "http://127.0.0.1:9/callback";

export const alice: OidcAccount = {
  subject: "alice",
  claims: { email: "alice@example.org", email_verified: true, name: "Alice" },
};

/** A running login service. */
export interface LoginKit {
  readonly url: string;
  readonly provider: OidcProvider;
  readonly store: Store;
  readonly deps: LoginDeps;
  /** What the operator's log got. */
  readonly problems: readonly string[];
  /** Milliseconds to add to the time of the machine. */
  skewMs: number;
  /** A root group, perhaps verified, with an identity provider at the same OpenID Provider; their uids. */
  organisation(name: string, verified?: boolean): Promise<{ group: string; owner: string; provider: string }>;
  stop(): Promise<void>;
}

/** How the service of a test is reached, and what is around it. */
export interface KitOptions {
  readonly tls?: boolean;
  /** Whether a proxy removes `iss` (RFC 9207) from responses of the login provider. */
  readonly stripIss?: boolean;
  /** Whether the login provider serves claims by UserInfo alone. */
  readonly userInfo?: "json" | "jwt" | undefined;
  /** How the login provider takes the secret of its client; see {@link startOidcProvider}. */
  readonly secretMethod?: SecretMethod;
  readonly announced?: readonly SecretMethod[];
  /** Origins of other providers that are trusted. */
  readonly trustedIssuers?: readonly string[];
}

/** Starts one; `change` replaces some of what it is made of. */
export async function startLogin(
  change: (made: LoginDeps) => Partial<LoginDeps> = () => ({}),
  { tls = false, stripIss = false, userInfo, trustedIssuers = [], secretMethod, announced }: KitOptions = {},
): Promise<LoginKit> {
  const provider = await startOidcProvider({ account: alice, stripIss, userInfo, secretMethod, announced });
  const time = { skewMs: 0 };
  const clock = () => Date.now() + time.skewMs;
  const settings = resolveSettings({ flags: { data: newDataDir(), tokenAlgorithm: "ES256" }, env: {} });
  const { store, keys, masterKey, close } = await openInstallation({ mode: "create", settings, clock });
  const server = tls ? createTlsServer({ cert: pem("cert"), key: pem("key") }) : createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `${tls ? "https" : "http"}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  provider.allowRedirect(`${url}/oauth/callback`);
  const problems: string[] = [];
  const origin = { baseUrl: url, issuer: url, audiences: [url] };
  const fetch = createGuardedFetch({ trustedOrigins: [provider.issuer, ...trustedIssuers] });
  const { issuer, clientId, clientSecret } = provider;
  const loginProviders = [
    { name: "test", title: "Test Login", issuer, clientId, clientSecret, scopes: ["openid", "email", "profile"] },
  ];
  const tokens = createTokens({ keys, ids: randomIds, issuer: url });
  const tickets = createTickets(masterKey);
  const idTokens = createIdTokens({ store, tickets, keys, issuer: url });
  const ownUrls = [url];
  const made: LoginDeps = {
    store,
    tokens,
    idTokens,
    exchanger: createExchanger({
      store,
      tokens,
      idTokens,
      fetch,
      clock,
      ownUrls,
      audiences: ownUrls,
      loginProviders,
      stsOrigins: [],
      maxTokenLifeS: MAX_LIFE_S,
      issuers: createIssuers({
        fetch,
        clock,
        isOwnIssuer: (name) => isOwnUrl(name, ownUrls),
        maxTokenLifeS: MAX_LIFE_S,
      }),
      lastSeen: createLastSeen(store),
      limiter: createFailureThrottle({ perName: PLENTY, perAddress: PLENTY }),
    }),
    tickets,
    masterKey,
    fetch,
    clock,
    ids: randomIds,
    origin,
    loginProviders,
    console: true,
    registration: "open",
    headlessConfirmation: "explicit",
    secure: tls,
    quotas: createQuotas(defaultLimits),
    failureNews: noFailureNews,
    inviteLimiter: createFailureLimiter({ points: 5, seconds: 600, blocks: false }),
    onProblem: (problem, error) => problems.push(error instanceof Error ? `${problem}: ${error.message}` : problem),
  };
  const deps = { ...made, ...change(made) };
  for (const { name } of deps.loginProviders) provider.allowRedirect(`${url}/oauth/callback/${name}`);
  const web = createWeb({
    routes: createLoginRoutes(deps),
    errorDomain: "test",
    onInternalError: (error) => problems.push(String(error.cause)),
  });
  server.on("request", (req, res) => {
    const { pathname } = new URL(req.url ?? "/", url);
    if (!web.handle(beginHttp1(req, res), pathname)) res.writeHead(404).end();
  });
  return {
    url,
    provider,
    store,
    deps,
    problems,
    get skewMs() {
      return time.skewMs;
    },
    set skewMs(ms) {
      time.skewMs = ms;
    },
    organisation: (name, verified = true) =>
      store.write(async (tx) => {
        const { group, identity: owner } = await bootstrap(tx, { org: name }, randomIds, clock());
        if (verified) await tx.table(groupKind).update(group, { verified }, clock());
        const uid = randomIds.newUid(group);
        provider.allowRedirect(`${url}/oauth/callback/${uid}`);
        const sealedSecret = masterKey.seal(Buffer.from(clientSecret ?? ""), `client secret ${uid}`);
        const times = { createTimeMs: clock(), updateTimeMs: clock() };
        await tx.table(identityProviderKind).insert({
          uid,
          groupUid: group,
          name: `${name} staff`,
          description: "",
          defaultRole: builtinRoleUid("viewer"),
          oidc: { issuer, clientId, additionalScopes: ["groups"], groupsClaim: "groups" },
          lacksDefaultRole: false,
          sealedSecret,
          scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
          ...times,
        });
        return { group, owner, provider: uid };
      }),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await provider.stop();
      await close();
    },
  };
}

function pem(name: string): Buffer {
  return readFileSync(new URL(`../../support/tls/${name}.pem`, import.meta.url));
}

/** What an invite of {@link inviteTo} is for besides its group. */
export interface InviteOptions {
  /** The name of a built-in role; viewer unless set. */
  readonly role?: string;
  readonly email?: string;
  readonly singleUse?: boolean;
}

/** Makes an invite, for a minute, in the name of `createdBy`; its code. */
export async function inviteTo(
  { store, deps }: LoginKit,
  group: string,
  createdBy: string,
  { role = "viewer", email = "", singleUse = true }: InviteOptions = {},
): Promise<string> {
  const { code, ...key } = createInviteCode(group);
  const [uid, nowMs] = [randomIds.newUid(group), deps.clock()];
  const times = { expireTimeMs: nowMs + 60_000, createTimeMs: nowMs, updateTimeMs: nowMs };
  const values = { groupUid: group, roleUid: builtinRoleUid(role), email, singleUse, createdBy };
  await store.write((tx) => tx.table(groupInviteKind).insert({ uid, ...values, ...key, ...times }));
  return code;
}

/** A PKCE verifier and its challenge. */
export function newPkce(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}

/** The parameters of `/oauth` for a code. */
export function codeRequest(challenge: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    response_type: "code",
    client_id: "arbor-cli",
    redirect_uri: PROGRAM,
    code_challenge: challenge,
    code_challenge_method: "S256",
    state: "state of the program",
    ...more,
  };
}

/** What came back: a page, or where a redirect to the program leads. */
export interface Seen {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parameters the program got; undefined for a page. */
  readonly program: URLSearchParams | undefined;
  /** The address of the page. */
  readonly url: string;
}

/** A browser without pictures: it keeps cookies and follows redirects, but not to programs. */
export class Agent {
  readonly jar = new Map<string, Map<string, string>>();
  /** Every address it was at. */
  readonly visited: string[] = [];
  readonly #send: (url: string, request: RequestInit) => Promise<Response>;

  /** @param send sends a request, and follows no redirect; by `fetch` unless given */
  constructor(send: (url: string, request: RequestInit) => Promise<Response> = fetch) {
    this.#send = send;
  }

  async get(url: string): Promise<Seen> {
    return this.#go(url, { method: "GET" });
  }

  /** Sends a form; a list of fields where one comes twice. */
  async post(
    url: string,
    form: Readonly<Record<string, string>> | readonly (readonly [string, string])[],
  ): Promise<Seen> {
    return this.#go(url, { method: "POST", body: new URLSearchParams(form as Record<string, string>) });
  }

  /** Decides on the page that asks whether to go on, where that is what was seen. */
  async decide(page: Seen, decision: "accept" | "decline" = "accept"): Promise<Seen> {
    if (!new URL(page.url).pathname.endsWith("/oauth/consent")) return page;
    return this.post(new URL("/oauth/consent", page.url).href, { ...readHiddenFields(page.text), decision });
  }

  /** Where an address leads, which is not followed. */
  async locationOf(url: string): Promise<string> {
    const response = await this.#request(url, { method: "GET" });
    return response.headers.get("location") ?? "";
  }

  async #request(url: string, request: RequestInit): Promise<Response> {
    const { host } = new URL(url);
    const cookies = this.jar.get(host) ?? new Map<string, string>();
    this.jar.set(host, cookies);
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await this.#send(url, {
      ...request,
      redirect: "manual",
      headers: cookie === "" ? {} : { cookie },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "" || /max-age=0|expires=thu, 01 jan 1970/i.test(line)) cookies.delete(name);
      else cookies.set(name, value);
    }
    return response;
  }

  async #go(start: string, init: RequestInit): Promise<Seen> {
    let url = start;
    let request = init;
    for (let hops = 0; hops < 12; hops++) {
      if (url.startsWith(PROGRAM)) {
        const program = new URL(url).searchParams;
        return { status: 303, headers: new Headers(), text: "", program, url };
      }
      this.visited.push(url);
      const response = await this.#request(url, request);
      const location = response.headers.get("location");
      const text = await response.text();
      if (location === null) {
        return { status: response.status, headers: response.headers, text, program: undefined, url };
      }
      url = new URL(location, url).href;
      request = { method: "GET" };
    }
    throw new Error("redirected too often");
  }
}

/** The fields of the form on a page, those that are hidden. */
export function readHiddenFields(page: string): Record<string, string> {
  const inputs = page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)">/g);
  return Object.fromEntries([...inputs].map(([, name, value = ""]) => [name, value.replaceAll("&amp;", "&")]));
}

/** The links on a page, absolute. */
export function linksIn({ text, url }: Seen): string[] {
  return [...text.matchAll(/<a class="button" href="([^"]+)"/g)].map(
    ([, href = ""]) => new URL(href.replaceAll("&amp;", "&"), url).href,
  );
}

/** Sends a form to an endpoint for programs. */
export async function postForm(
  url: string,
  form: Readonly<Record<string, string>> | URLSearchParams,
): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams(form as Record<string, string>) });
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

/** The claims of a token, whose signature is not looked at. */
export function claimsOf(token: unknown): Record<string, unknown> {
  const [, claims = ""] = String(token).split(".");
  return JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, unknown>;
}
