// `arbor auth pull-tokens` against a running service.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { type Host, startHost } from "../e2e/process.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import { askToken } from "./token-kit.js";

const DAY_MS = 24 * 60 * 60 * 1000;

let world: ExchangeWorld;
let host: Host;
before(async () => {
  host = startHost();
  world = await startExchangeWorld();
});
after(async () => {
  host.close();
  await world.stop();
});

const pullToken = (args: readonly string[], token = world.owner.token) =>
  host.run(["auth", "pull-token", ...args, "--api", world.url], { ARBOR_TOKEN: token });

async function createPullToken(...flags: string[]) {
  const { code, stdout, stderr } = await pullToken(["create", "--group", world.root, "-o", "json", ...flags]);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as { name: string; username: string; password: string; expireTime: string };
}

const pull = async (user: string, password: string) => {
  const scope = `repository:${world.root}/a:pull,push`;
  const { status, token } = await askToken(world.url, { user, password, parameters: [["scope", scope]] });
  return status === 200 ? claimsOf(token).access : status;
};

test("a pull token pulls until it is revoked", async () => {
  const { name, username, password, expireTime } = await createPullToken("--name", "ci");
  assert.equal(name, "pull-token-ci");
  const access = [{ type: "repository", name: `${world.root}/a`, actions: ["pull"] }];
  assert.deepEqual(await pull(username, password), access);
  const left = Date.parse(expireTime) - Date.now();
  assert.ok(left > 29.99 * DAY_MS && left <= 30 * DAY_MS, String(left));
  // Months are no matter to a password, unlike to the token of a provider.
  world.harness.skewMs = 29 * DAY_MS;
  assert.deepEqual(await pull(username, password), access);
  world.harness.skewMs = 31 * DAY_MS;
  assert.equal(await pull(username, password), 401);
  world.harness.skewMs = 0;

  // It is a password at the registry, and nothing that can be exchanged.
  assert.equal((await world.exchange({ identity: username }, password)).status, 401);

  const other = await createPullToken();
  assert.equal(await pull(other.username, password), 401);
  const list = await pullToken(["list", "-o", "json"]);
  const { pullTokens } = JSON.parse(list.stdout) as { pullTokens: { uid: string; name: string; expireTime: string }[] };
  assert.deepEqual(pullTokens.map(({ uid }) => uid).sort(), [username, other.username].sort());
  assert.equal(Date.parse(pullTokens.find(({ uid }) => uid === username)?.expireTime ?? ""), Date.parse(expireTime));
  assert.ok(!list.stdout.includes(password));

  const revoked = await pullToken(["revoke", username, "--yes"]);
  assert.equal(revoked.stdout, `revoked ${username}\n`, revoked.stderr);
  assert.equal(await pull(username, password), 401);
  assert.deepEqual(await pull(other.username, other.password), access);
  const left2 = await world.harness.app.installation.store.read((tx) =>
    tx.table(roleBindingKind).findByIdentity(username),
  );
  assert.deepEqual(left2, []);
});

test("lives as long as requested, within a year", async () => {
  const { expireTime } = await createPullToken("--ttl", "8760h");
  assert.ok(Date.parse(expireTime) - Date.now() > 364.9 * DAY_MS);
  for (const ttl of ["8761h", "366d", "0h", "30", "1y", "-1h"]) {
    const { code, stderr } = await pullToken(["create", "--group", world.root, `--ttl=${ttl}`]);
    assert.notEqual(code, 0);
    assert.match(stderr, /--ttl: must be a number of h or d, at most 8760h/);
  }
});

test("a caller who may not bind creates nothing, and other identities are not revoked", async () => {
  const { token } = await world.harness.identity({}, world.root);
  const { code, stdout } = await pullToken(["create", "--group", world.root], token);
  assert.notEqual(code, 0);
  assert.equal(stdout, "");
  const workload = await world.workload("ci");
  const refused = await pullToken(["revoke", workload, "--yes"]);
  assert.match(refused.stderr, /is no pull token/);
  const row = await world.harness.app.installation.store.read((tx) => tx.table(identityKind).find(workload));
  assert.ok(row);
});
