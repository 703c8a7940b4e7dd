// A whole service with a login provider, and device logins as published clients do them.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createIdTokens } from "../../../src/issuer/oauth/id-tokens.js";
import type { IdTokenLogin } from "../../../src/issuer/oauth/state.js";
import { createTickets } from "../../../src/issuer/oauth/tickets.js";
import { newDataDir } from "../../support/data-dir.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { type OidcProvider, startOidcProvider } from "../../support/oidc-provider.js";
import { type Answer, ask, queryOf } from "../sts/ask.js";
import { Agent, alice, linksIn, postForm, readHiddenFields } from "./login-kit.js";

const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";

/** The endpoints in the discovery document, which clients use. */
export type Metadata = Readonly<Record<"issuer" | "jwks_uri", string>> & Readonly<Record<string, unknown>>;

/** A running service and its login provider. */
export interface LoginWorld {
  readonly harness: Harness;
  readonly provider: OidcProvider;
  /** Stops the service and starts it again, on the same data and address. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it on SQLite. */
export async function startLoginWorld(): Promise<LoginWorld> {
  const provider = await startOidcProvider({ account: alice });
  const data = newDataDir();
  const loginProviders = join(data, "login-providers.json");
  const { issuer, clientId, clientSecret = "" } = provider;
  const clientSecretFile = join(data, "client.secret");
  writeFileSync(clientSecretFile, clientSecret, { mode: 0o600 });
  writeFileSync(
    loginProviders,
    JSON.stringify([{ name: "test", title: "Test Login", issuer, clientId, clientSecretFile }]),
  );
  const registryUrl = "https://registry.example";
  const settings = { data, loginProviders, trustedIssuers: issuer, registration: "open", registryUrl };
  let harness = await startHarness(settings);
  const listen = new URL(harness.url).host;
  provider.allowRedirect(`${harness.url}/oauth/callback`);
  return {
    get harness() {
      return harness;
    },
    provider,
    async restart() {
      await harness.stop();
      harness = await startHarness({ ...settings, listen });
    },
    async stop() {
      await harness.stop();
      await provider.stop();
    },
  };
}

/** Reads the discovery document of an issuer. */
export async function discover(issuer: string): Promise<Metadata> {
  return (await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()) as Metadata;
}

/** Does a device login, up to the response of the token endpoint; a person approves it in a browser. */
export async function deviceLogin(
  issuer: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Readonly<Record<string, unknown>>> {
  const metadata = await discover(issuer);
  const client = { client_id: "auth0", scope: "openid email profile", ...more };
  const started = await postForm(String(metadata.device_authorization_endpoint), client);
  if (started.status !== 200) throw new Error(JSON.stringify(started.body));
  const { device_code, user_code, verification_uri_complete } = started.body;
  const agent = new Agent();
  const typed = await agent.get(String(verification_uri_complete));
  const chosen = await agent.post(`${issuer}/activate`, {
    ...readHiddenFields(typed.text),
    user_code: String(user_code),
  });
  const approval = await agent.get(linksIn(chosen)[0] ?? "");
  await agent.post(`${issuer}/activate`, { ...readHiddenFields(approval.text), decision: "approve" });
  const form = { grant_type: DEVICE, client_id: client.client_id, device_code: String(device_code) };
  const { status, body } = await postForm(String(metadata.token_endpoint), form);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body;
}

/** `POST /sts/exchange`. */
export function exchange(
  url: string,
  bearer: unknown,
  parameters: Readonly<Record<string, string | readonly string[]>> = {},
): Promise<Answer> {
  return ask(url, `/sts/exchange?${queryOf({ aud: url, ...parameters })}`, { method: "POST", bearer: String(bearer) });
}

/** An ID token as the service makes it for a device login, without the login. */
export async function makeIdToken(
  { app }: Pick<Harness, "app">,
  issuer: string,
  login: Pick<IdTokenLogin, "identityUid"> & Partial<IdTokenLogin>,
  nowMs: number,
): Promise<string> {
  const { store, masterKey, keys } = app.installation;
  const idTokens = createIdTokens({ store, tickets: createTickets(masterKey), keys, issuer });
  const whole = { grant: { audience: issuer }, atMs: nowMs, ...login };
  const sign = await store.write((tx) => idTokens.create(tx, "device", whole, nowMs));
  return sign();
}
