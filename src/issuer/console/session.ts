// `POST /console/session`: the session of the web console in one browser (docs/login.md#the-console).
//
//   the page           makes a random key, which stays in the storage of its origin, and sends the browser to GET /oauth as
//                      the client `console` (client.ts, ../oauth/authorize.ts).
//   {code, verifier}   signs in: the code begins a session, whose secret goes into a cookie (cookie.ts). Whoever gets no
//                      response sends the same again, and gets another secret for the same session. The same code with
//                      another verifier or key is stolen, and ends it.
//   {}                 renews: both halves give an API token (sessions.ts). Nothing is replaced, so a lost response costs
//                      nothing, and tabs need not wait for each other.
//   {end: true}        signs out here. `arbor.sessions.v1` lists and ends the sessions of a person everywhere.
import { sha256 } from "../../kernel/digest.js";
import { invalidArgument, noSession } from "../../kernel/errors.js";
import { isJsonObject } from "../../kernel/strict-json.js";
import { CONSOLE_SESSION_PATH, type WebRequest, type WebResponse, type WebRoute } from "../../kernel/web.js";
import type { Tx } from "../../store/transaction.js";
import { findBrowser } from "../oauth/browser.js";
import { buildTokenGrant } from "../oauth/complete-login.js";
import type { LoginContext } from "../oauth/context.js";
import { matchesChallenge } from "../oauth/pkce.js";
import { buildJsonResponse } from "../oauth/responses.js";
import type { BegunSession, IssuedCode } from "../oauth/state.js";
import { endLoginOfUsedCode, USED_CODE_RETENTION_MS } from "../oauth/token.js";
import { createFailureThrottle } from "../sts/failure-throttle.js";
import { isLoginValid, MAX_LOGIN_MS } from "../tokens.js";
import { CONSOLE_CLIENT_ID } from "./client.js";
import { findKey, findSecrets, formatCookie, formatNoCookie, requireOwnScript } from "./cookie.js";
import { createConsoleSessions, type NewSession, type OpenSession } from "./sessions.js";

const MAX_BODY_BYTES = 4 * 1024;
const MAX_CODE = 128;

/** Rejected requests within a minute, before a browser and an address are slowed down. */
const FAILURES = { perName: { points: 60, seconds: 60 }, perAddress: { points: 300, seconds: 60 } };

/** What a page asks for. */
type SessionRequest =
  | { readonly kind: "sign-in"; readonly code: string; readonly codeVerifier: string }
  | { readonly kind: "renewal" }
  | { readonly kind: "end" };

/** What a sign-in proves its code with. */
interface Proof {
  readonly verifier: string;
  readonly key: string;
  /** The hash of the browser's cookie of logins. */
  readonly browser: string | undefined;
}

/** Creates the route. */
export function createSessionRoute(context: LoginContext): WebRoute {
  const { store, tickets, tokens, clock, origin, secure, failureNews: news } = context;
  const sessions = createConsoleSessions(context);
  const throttle = createFailureThrottle(FAILURES, { news, kind: "console session" });

  async function signIn(request: WebRequest, code: string, verifier: string, key: string): Promise<WebResponse> {
    // Whoever sends any code causes no write.
    const isKnown = (await store.read((tx) => tickets.find(tx, "code", code, clock()))) !== undefined;
    const browser = findBrowser(request, secure)?.hash;
    const begun = isKnown ? await store.write((tx) => redeem(tx, code, { verifier, key, browser })) : undefined;
    if (begun === undefined) throw noSession();
    const { session, secret } = begun;
    const lifeMs = session.idpId === undefined ? MAX_LOGIN_MS : session.expireTimeMs - clock();
    return respond(session, { "set-cookie": formatCookie(secret, Math.ceil(lifeMs / 1000), secure) });
  }

  async function redeem(tx: Tx, code: string, proof: Proof): Promise<NewSession | undefined> {
    const { verifier, key, browser } = proof;
    const nowMs = clock();
    const issued = await tickets.find(tx, "code", code, nowMs);
    if (issued === undefined) return undefined;
    if (issued.used) return repeat(tx, issued, { code, verifier, key, nowMs });
    const { clientId, challenge, login } = issued;
    // A page of another site may begin a login with a challenge whose verifier it knows. The browser of that login alone can
    // redeem its code.
    const isOwn = browser !== undefined && issued.browser === browser;
    const isValid = clientId === CONSOLE_CLIENT_ID && isOwn && matchesChallenge(verifier, challenge);
    if (!isValid || !(await isLoginValid(tx, login.identityUid, login))) {
      await tickets.delete(tx, code);
      return undefined;
    }
    const grant = await buildTokenGrant(tx, login, origin.audiences);
    const begun = await sessions.create(tx, login, grant, key, nowMs);
    const { id, hash } = begun.session;
    const untilMs = nowMs + USED_CODE_RETENTION_MS;
    await noteBegun(tx, code, { id, hash, challenge, keyHash: sha256(key).toString("hex"), untilMs });
    return begun;
  }

  async function repeat(
    tx: Tx,
    issued: Extract<IssuedCode, { used: true }>,
    sent: { readonly code: string; readonly verifier: string; readonly key: string; readonly nowMs: number },
  ): Promise<NewSession | undefined> {
    const { session } = issued;
    const { code, verifier, key, nowMs } = sent;
    if (session?.keyHash !== sha256(key).toString("hex") || !matchesChallenge(verifier, session.challenge)) {
      await endLoginOfUsedCode(tx, context, issued);
      return undefined;
    }
    const begun = await sessions.replaceSecret(tx, session.hash, key, nowMs);
    if (begun !== undefined) await noteBegun(tx, code, { ...session, hash: begun.session.hash });
    return begun;
  }

  async function noteBegun(tx: Tx, code: string, session: BegunSession): Promise<void> {
    await tickets.put(tx, "code", code, { used: true, session }, session.untilMs);
  }

  async function renew(secrets: readonly string[], key: string): Promise<WebResponse> {
    const session = await store.read((tx) => sessions.find(tx, secrets, key, clock()));
    if (session === undefined) throw noSession();
    if (session.isExtended) await store.write((tx) => sessions.extend(tx, session));
    return respond(session);
  }

  async function end(secrets: readonly string[], key: string): Promise<WebResponse> {
    const id = await store.read((tx) => sessions.findId(tx, secrets, key));
    if (id !== undefined) await store.write((tx) => tx.refreshTokens.deleteFamily(id));
    return buildJsonResponse(200, {}, { "set-cookie": formatNoCookie(secure) });
  }

  async function respond(
    { id, token, expireTimeMs, idpId }: OpenSession,
    headers?: Readonly<Record<string, string>>,
  ): Promise<WebResponse> {
    const { token: accessToken, expiresAtMs } = await tokens.sign(token);
    const renewal = idpId === undefined ? "cookie" : "redirect";
    const session = { id, expireTime: new Date(expireTimeMs).toISOString(), renewal, idpId };
    const expiresIn = Math.max(0, Math.floor((expiresAtMs - clock()) / 1000));
    return buildJsonResponse(200, { accessToken, expiresIn, session }, headers);
  }

  async function handle(request: WebRequest): Promise<WebResponse> {
    const asked = parseSessionRequest(await request.json());
    const key = findKey(request);
    const secrets = findSecrets(request, secure);
    // A browser that had a session is not slowed down by others at its address.
    const claimant = { remoteAddress: request.remoteAddress, name: sha256(key).toString("hex") };
    switch (asked.kind) {
      case "sign-in":
        return throttle.run(claimant, () => signIn(request, asked.code, asked.codeVerifier, key));
      case "renewal":
        return throttle.run(claimant, () => renew(secrets, key));
      case "end":
        // It succeeds for everybody, which proves nothing.
        await throttle.admit(claimant);
        return end(secrets, key);
    }
  }

  return {
    path: CONSOLE_SESSION_PATH,
    method: "POST",
    access: (request) => requireOwnScript(request, origin.baseUrl),
    maxBytes: MAX_BODY_BYTES,
    handle,
  };
}

function parseSessionRequest(body: unknown): SessionRequest {
  const fields = isJsonObject(body) ? body : {};
  const { code, codeVerifier, end } = fields;
  const names = Object.keys(fields).sort().join(" ");
  if (isJsonObject(body) && names === "") return { kind: "renewal" };
  if (names === "end" && end === true) return { kind: "end" };
  const isSignIn = names === "code codeVerifier" && typeof code === "string" && typeof codeVerifier === "string";
  if (isSignIn && code.length <= MAX_CODE) return { kind: "sign-in", code, codeVerifier };
  const rule = "must be an empty object, one with a code and its verifier, or one that ends the session";
  throw invalidArgument({ field: "body", rule });
}
