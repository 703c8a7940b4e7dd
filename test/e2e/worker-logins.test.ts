// Logins and exchanges of tokens at `arbor serve --workers`, each request at another worker than the one before.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { Agent as Connection, type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, beforeEach, test } from "node:test";
import { Agent, alice, claimsOf, codeRequest, newPkce, PROGRAM } from "../issuer/oauth/login-kit.js";
import { freePort } from "../support/free-port.js";
import { type LocalIssuer, startLocalIssuer } from "../support/local-issuer.js";
import { type OidcProvider, startOidcProvider } from "../support/oidc-provider.js";
import { tempDir } from "../support/temp-dir.js";
import { type Organisation, type Service, startHost, startService } from "./process.js";

const host = startHost();
const connections: Connection[] = [];
let provider: OidcProvider;
let workloads: LocalIssuer;
let service: Service;
let made: Organisation;
/** The requests to the service, in their order. */
let requestIds: string[];

before(async () => {
  provider = await startOidcProvider({ account: alice });
  workloads = await startLocalIssuer();
  const data = tempDir();
  const url = `http://127.0.0.1:${await freePort()}`;
  provider.allowRedirect(`${url}/oauth/callback`);
  const [loginProviders, clientSecretFile] = [join(data, "login-providers.json"), join(data, "client.secret")];
  const { issuer, clientId, clientSecret = "" } = provider;
  writeFileSync(clientSecretFile, clientSecret, { mode: 0o600 });
  writeFileSync(
    loginProviders,
    JSON.stringify([{ name: "test", title: "Test Login", issuer, clientId, clientSecretFile }]),
  );
  const own = ["--base-url", url, "--listen", new URL(url).host];
  const bootstrapped = await host.run(["bootstrap", "--org", "logins.example", "--data", data, "--json", ...own]);
  made = JSON.parse(bootstrapped.stdout) as Organisation;
  const trusted = `${issuer},${workloads.issuer}`;
  const login = ["--login-providers", loginProviders, "--registration", "open", "--trusted-issuers", trusted];
  service = await startService(data, ...own, ...login, "--workers", "2", "--metrics-listen", "off");
});

beforeEach(() => {
  requestIds = [];
});

after(async () => {
  for (const connection of connections) connection.destroy();
  service?.signal("SIGKILL");
  await service?.ended;
  await Promise.all([provider?.stop(), workloads?.stop()]);
  host.close();
});

/** Sends a request by a connection of its own. All are kept, so that the next one is at the other worker. */
async function send(url: string, { method = "GET", headers, body }: RequestInit): Promise<Response> {
  const agent = new Connection({ keepAlive: true });
  connections.push(agent);
  const type = body instanceof URLSearchParams && { "content-type": "application/x-www-form-urlencoded" };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const options = { agent, method, headers: { ...(headers as Record<string, string>), ...type } };
    request(url, options, resolve).on("error", reject).end(body?.toString());
  });
  const answered = new Headers();
  for (const [name, values = []] of Object.entries(response.headersDistinct)) {
    for (const value of values) answered.append(name, value);
  }
  if (url.startsWith(service.url)) requestIds.push(answered.get("x-request-id") ?? "");
  return new Response(await text(response), { status: response.statusCode ?? 0, headers: answered });
}

async function json(url: string, init: RequestInit): Promise<Record<string, unknown>> {
  const response = await send(url, init);
  return { status: response.status, ...((await response.json()) as object) };
}

const get = (path: string, token: unknown) =>
  json(`${service.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
const redeem = (form: Record<string, string>) =>
  json(`${service.url}/oauth/token`, { method: "POST", body: new URLSearchParams(form) });

/** The workers that answered, in the order of the requests. */
async function answeredBy(): Promise<unknown[]> {
  const lines = await Promise.all(requestIds.map((id) => service.waitForLog(`"requestId":"${id}"`)));
  return lines.map(({ worker }) => worker);
}

function assertTurns(workers: readonly unknown[]): void {
  assert.deepEqual(new Set(workers), new Set([1, 2]));
  for (const [i, worker] of workers.slice(1).entries()) assert.notEqual(worker, workers[i], workers.join());
}

test("a login that one worker begins goes on at another, and its codes are used once", async () => {
  const { verifier, challenge } = newPkce();
  const browser = new Agent(send);
  const query = new URLSearchParams(codeRequest(challenge, { create_refresh_token: "true" }));
  const { program } = await browser.decide(await browser.get(`${service.url}/oauth?${query}`));
  const form = {
    ...{ grant_type: "authorization_code", client_id: "arbor-cli", redirect_uri: PROGRAM },
    ...{ code: program?.get("code") ?? "", code_verifier: verifier },
  };
  const tokens = await redeem(form);
  assert.equal(tokens.status, 200, JSON.stringify(tokens));
  const path = `/iam/v2beta1/identities/${claimsOf(tokens.access_token).sub}`;
  for (let i = 0; i < 2; i++) assert.equal((await get(path, tokens.access_token)).status, 200);
  const refresh = { grant_type: "refresh_token", refresh_token: String(tokens.refresh_token) };
  const renewed = await redeem(refresh);
  assert.equal(renewed.status, 200, JSON.stringify(renewed));
  for (let i = 0; i < 2; i++) assert.equal((await get(path, renewed.access_token)).status, 200);
  // At both workers, whichever redeemed them.
  for (const used of [form, form, refresh, refresh]) assert.equal((await redeem(used)).status, 400);
  const workers = await answeredBy();
  assert.ok(workers.length >= 12, `${workers.length} requests`);
  assertTurns(workers);
});

test("a token that one worker issues is valid at the others, and ends at all when its identity does", async () => {
  const headers = { authorization: `Bearer ${made.token}`, "content-type": "application/json" };
  const claimMatch = { issuer: workloads.issuer, subject: "job" };
  const identity = await json(`${service.url}/iam/v2beta1/identities/${made.group}`, {
    ...{ method: "POST", headers },
    body: JSON.stringify({ name: "job", claimMatch }),
  });
  assert.equal(identity.status, 200, JSON.stringify(identity));
  const path = `/iam/v2beta1/identities/${identity.uid}`;
  const exchange = `/sts/exchange?${new URLSearchParams({ aud: service.url, identity: String(identity.uid) })}`;
  const issued: unknown[] = [];
  for (let i = 0; i < 4; i++) {
    const { token } = await get(exchange, workloads.token({ sub: "job", aud: service.url }));
    // It may do nothing, and is known.
    for (let j = 0; j < 2; j++) assert.notEqual((await get(path, token)).status, 401);
    issued.push(token);
  }
  assert.equal((await send(`${service.url}${path}`, { method: "DELETE", headers })).status, 200);
  for (const token of issued) for (let j = 0; j < 2; j++) assert.equal((await get(path, token)).status, 401);
  const workers = await answeredBy();
  assertTurns(workers);
  // Exchanges are the second request, and each third one after it.
  assert.deepEqual(new Set([1, 4, 7, 10].map((i) => workers[i])), new Set([1, 2]));
});
