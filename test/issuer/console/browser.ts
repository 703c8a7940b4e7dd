// The console in a browser, reduced to what its session needs: a key, cookies, and requests to `/console/session`.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { getBrowser } from "../../../src/issuer/oauth/browser.js";
import type { SignedInFor } from "../../../src/issuer/oauth/state.js";
import { createSecret, createTickets } from "../../../src/issuer/oauth/tickets.js";
import type { WebRequest } from "../../../src/kernel/web.js";
import type { Harness } from "../../support/harness.js";
import { type Received, requestH1 } from "../../support/requests.js";
import { newPkce } from "../oauth/login-kit.js";

/** What the service answers to a sign-in and a renewal. */
export interface SessionBody {
  readonly accessToken: string;
  readonly expiresIn: number;
  readonly session: {
    readonly id: string;
    readonly expireTime: string;
    readonly renewal: string;
    readonly idpId?: string;
  };
}

/** A response, and its body where it has one. */
export interface SessionAnswer extends Received {
  readonly body: SessionBody;
}

/** A code, and the verifier that belongs to it. */
export interface CodeGrant {
  readonly code: string;
  readonly codeVerifier: string;
  /** The cookie of the browser that logged in, as `name=value`; that of all unless given. */
  readonly login?: string;
}

/** Header fields of a request; undefined leaves one out. */
export type FieldChange = Readonly<Record<string, string | undefined>>;

export const newKey = () => randomBytes(32).toString("base64url");

/** The secret in the cookie of logins, which all browsers of these tests have unless they say otherwise. */
const LOGIN = "L".repeat(43);
const LOGIN_HASH = getBrowser({ cookie: () => LOGIN } as unknown as WebRequest, false).hash;

/** A browser with one key. */
export class ConsoleBrowser {
  key = newKey();
  /** The cookie of the session, as `name=value`; empty without one. */
  cookie = "";
  /** The cookie of the login, as `name=value`. */
  login = `arbor-login=${LOGIN}`;
  readonly url: string;
  readonly #origin: string;

  /** @param origin that of the base URL; the address of the service unless given */
  constructor(url: string, origin = url) {
    this.url = url;
    this.#origin = origin;
  }

  /** A POST whose response arrives: the cookie is stored. */
  async post(body: object, fields: FieldChange = {}): Promise<SessionAnswer> {
    const answer = await this.send(JSON.stringify(body), fields);
    for (const line of answer.headers["set-cookie"] ?? []) {
      const [pair = ""] = line.split(";");
      this.cookie = pair.endsWith("=") ? "" : pair;
    }
    return answer;
  }

  /** A POST whose response is lost for the browser. */
  async send(body: string, fields: FieldChange = {}): Promise<SessionAnswer> {
    const sent: FieldChange = {
      origin: this.#origin,
      "sec-fetch-site": "same-origin",
      "content-type": "application/json",
      "arbor-console-key": this.key,
      cookie: [this.login, this.cookie].filter((one) => one !== "").join("; "),
      ...fields,
    };
    const headers = Object.fromEntries(
      Object.entries(sent).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])),
    );
    const port = Number(new URL(this.url).port);
    const answer = await requestH1(port, { method: "POST", path: "/console/session", headers, body });
    return { ...answer, body: (answer.text === "" ? {} : JSON.parse(answer.text)) as SessionBody };
  }

  signIn = ({ login = this.login, ...grant }: CodeGrant) => {
    this.login = login;
    return this.post(grant);
  };
  renew = (fields?: FieldChange) => this.post({}, fields);
  end = (fields?: FieldChange) => this.post({ end: true }, fields);

  /** Another page of the same browser. */
  copy(): ConsoleBrowser {
    const other = new ConsoleBrowser(this.url, this.#origin);
    Object.assign(other, { key: this.key, cookie: this.cookie });
    return other;
  }
}

export const bearerOf = ({ body }: SessionAnswer) => body.accessToken;

export function assertOpen(answer: SessionAnswer, message?: string): SessionBody {
  assert.equal(answer.status, 200, message ?? answer.text);
  return answer.body;
}

export function assertNoSession(answer: SessionAnswer, message?: string): void {
  assert.equal(answer.status, 401, message ?? answer.text);
  assert.equal((JSON.parse(answer.text) as { code: number }).code, 16);
  assert.equal(answer.headers["set-cookie"], undefined, "the cookie may be that of another session");
}

/** A code as the service makes it at the end of a login, without the login. */
export async function makeCode(
  { app }: Pick<Harness, "app">,
  baseUrl: string,
  identityUid: string,
  nowMs: number,
  { clientId = "console", ...more }: { readonly clientId?: string } & Partial<SignedInFor> = {},
): Promise<CodeGrant> {
  const { store, masterKey } = app.installation;
  const { verifier, challenge } = newPkce();
  const code = createSecret();
  const asked = { aud: [baseUrl], cap: [], scopes: [] };
  const login = { identityUid, asked, mappings: [], informative: {}, refresh: true, atMs: nowMs, ...more };
  const redirectUri = `${baseUrl}/console/callback`;
  const issued = { used: false, clientId, redirectUri, challenge, login, browser: LOGIN_HASH } as const;
  await store.write((tx) => createTickets(masterKey).put(tx, "code", code, issued, nowMs + 60_000));
  return { code, codeVerifier: verifier };
}

export function hashOfText(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** The hash under which a session is stored. */
export function hashOf({ cookie, key }: ConsoleBrowser): string {
  const [, secret = ""] = cookie.split("=");
  const halves = [secret, key].map((half) => Buffer.from(hashOfText(half), "hex"));
  return createHash("sha256").update(Buffer.concat(halves)).digest("hex");
}
