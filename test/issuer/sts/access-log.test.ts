// Logs are read by many: no token reaches one, good or bad, wherever it stands
// in a request.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { type App, startApp } from "../../../src/app/app.js";
import { resolveSettings } from "../../../src/config/config.js";
import { bootstrap } from "../../../src/iam/operator/bootstrap.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { createLogger } from "../../../src/telemetry/logger.js";
import { rawClients, requestOf } from "../../contract/iam-clients.js";
import { newDataDir } from "../../support/data-dir.js";
import { type LocalIssuer, startLocalIssuer } from "../../support/local-issuer.js";
import { identityRow } from "../../support/rows.js";
import { chooseScale } from "../../support/scale.js";
import { ask, queryOf } from "./ask.js";

const CALLS = chooseScale(1_000, 120);
const lines: string[] = [];
let app: App;
let workloads: LocalIssuer;
let identity: string;

before(async () => {
  workloads = await startLocalIssuer();
  const storage = { data: newDataDir(), tokenAlgorithm: "ES256" };
  const flags = { listen: "127.0.0.1:0", ...storage, trustedIssuers: workloads.issuer };
  const logger = createLogger("trace", { write: (line) => void lines.push(line) });
  app = await startApp({ settings: resolveSettings({ flags, env: {} }), logger });
  await app.installation.store.write(async (tx) => {
    const { group } = await bootstrap(tx, { org: "acme" }, randomIds, Date.now());
    identity = randomIds.newUid(group);
    const relationship = { claimMatch: { issuer: workloads.issuer, subject: "ci" } };
    await tx.table(identityKind).insert(identityRow(identity, { relation: 1, relationship }));
  });
});
after(async () => {
  await app.stop();
  await workloads.stop();
});

it(`logs each of ${CALLS} exchanges and no token`, async () => {
  const { url } = app;
  const token = (claims: object) => workloads.token({ aud: url, sub: "ci", ...claims });
  const { exchange } = SecurityTokenService.method;
  const clients = rawClients(url);
  const request = requestOf(exchange, { aud: [url], identity });
  let issued = "";
  const query = queryOf({ aud: url, identity });
  const good: readonly (() => Promise<unknown>)[] = [
    async () => {
      const { json } = await ask(url, `/sts/exchange?${query}`, { bearer: token({}) });
      issued = String(json.token);
    },
    () => ask(url, "/sts/exchange", { method: "POST", form: `${query}&token=${token({})}`, bearer: token({}) }),
    ...clients.map((client) => () => client.call(exchange, request, token({}))),
  ];
  const bad: readonly (() => Promise<unknown>)[] = [
    () => ask(url, `/sts/exchange?${query}`, { bearer: token({ sub: "x" }) }),
    () => ask(url, `/sts/exchange?${query}&subject_token=${token({})}`),
    () => ask(url, `/sts/exchange?${queryOf({ aud: token({}), identity: token({}) })}`, { bearer: token({}) }),
    () => ask(url, `/sts/exchange_refresh_token?${query}`, { method: "POST", bearer: token({}) }),
    () => ask(url, "/auth/v1/ok", { bearer: `${issued}x` }),
    () => ask(url, "/auth/v1/ok", { headers: { cookie: `token=${issued}`, authorization: issued } }),
    ...clients.map((client) => () => client.call(exchange, request, token({ iss: "https://elsewhere.example" }))),
  ];
  // Fewer than the failure limit, so that not all are slowed down.
  for (let i = 0; i < CALLS; i++) await (i % 8 === 7 ? bad[Math.floor(i / 8) % bad.length] : good[i % good.length])?.();
  for (const client of clients) client.close();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const records = lines.map((line) => JSON.parse(line) as { method?: string; msg: string });
  const exchanges = records.filter(({ method, msg }) => msg === "request" && /exchange$/i.test(method ?? ""));
  assert.ok(exchanges.length >= 0.9 * CALLS, `${exchanges.length} lines`);
  assert.match(issued, /^eyJ/, "tokens begin so");
  assert.deepEqual(
    lines.filter((line) => line.includes("eyJ") || line.includes(encodeURIComponent("eyJ"))),
    [],
  );
});
