// A stock registry that trusts this service, with a stock client.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, test } from "node:test";
import { decodeProtectedHeader } from "jose";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { builtinIdentityUid, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import { signToken } from "../support/local-issuer.js";
import { localImage } from "./image.js";
import { arbor, type Outcome, type Registry, registryMissing, skopeo, startRegistry } from "./registry.js";

const PLAIN = ["--src-tls-verify=false", "--dest-tls-verify=false"];
const skip = registryMissing;

let world: ExchangeWorld;
let registry: Registry;

before(async () => {
  if (skip) return;
  world = await startExchangeWorld();
  registry = await startRegistry({ data: world.data });
});
after(async () => {
  if (skip) return;
  await registry.stop();
  await world.stop();
});

interface Somebody {
  readonly user: string;
  readonly password: string;
}

const at = (org: string, repo: string) => `docker://${registry.host}/${org}/${repo}:latest`;

/** An identity with a role at the organisation of the world, and its API token. */
async function member(role: string, group = world.root): Promise<Somebody & { readonly binding: string }> {
  const { uid, token } = await world.harness.identity({}, group);
  return { user: "_token", password: token, binding: await world.harness.bind(uid, role, group) };
}

function push(image: string, to: string, { user, password }: Somebody): Promise<Outcome> {
  return skopeo(["copy", ...PLAIN, "--dest-creds", `${user}:${password}`, image, to]);
}

function inspect(from: string, somebody?: Somebody): Promise<Outcome> {
  const creds = somebody === undefined ? ["--no-creds"] : ["--creds", `${somebody.user}:${somebody.password}`];
  return skopeo(["inspect", "--tls-verify=false", ...creds, "--format", "{{.Digest}}", from]);
}

function assertSuccess({ status, stdout, stderr }: Outcome): string {
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

function assertRejected({ status, stderr }: Outcome): void {
  assert.notEqual(status, 0);
  assert.match(stderr, /unauthorized|denied|authentication required/i);
}

test("roles decide who pushes, pulls and deletes", { skip }, async () => {
  const image = localImage("roles");
  const [pusher, puller] = [await member("registry.push"), await member("registry.pull")];
  const stranger = await member("registry.push", world.foreign);
  const path = at(world.root, "roles");
  assertRejected(await push(image.name, path, puller));
  assertRejected(await push(image.name, path, stranger));
  assertSuccess(await push(image.name, path, pusher));
  assert.equal(assertSuccess(await inspect(path, puller)), image.digest);
  assertRejected(await inspect(path, stranger));
  assertRejected(await inspect(path));
  const remove = ({ user, password }: Somebody) =>
    skopeo(["delete", "--tls-verify=false", "--creds", `${user}:${password}`, path]);
  assertRejected(await remove(puller));
  assertSuccess(await remove(pusher));
  assert.notEqual((await inspect(path, puller)).status, 0);
});

test("a workload pushes with its own OIDC token for a password", { skip }, async () => {
  const image = localImage("keyless");
  const user = await world.workload("ci", { role: "registry.push" });
  const path = at(world.root, "keyless");
  assertRejected(await push(image.name, path, { user, password: world.token({ sub: "somebody else" }) }));
  assertSuccess(await push(image.name, path, { user, password: world.token({ sub: "ci" }) }));
  assert.equal(assertSuccess(await inspect(path, { user, password: world.token({ sub: "ci" }) })), image.digest);
});

test("a repo bound to anonymous is pulled without credentials, until the binding is deleted", { skip }, async () => {
  const image = localImage("public");
  const path = at(world.root, "public");
  assertSuccess(await push(image.name, path, await member("registry.push")));
  assertRejected(await inspect(path));
  const binding = await world.harness.bind(builtinIdentityUid("anonymous"), "registry.pull", world.root);
  assert.equal(assertSuccess(await inspect(path)), image.digest);
  assertRejected(await skopeo(["copy", ...PLAIN, "--dest-no-creds", image.name, at(world.root, "other")]));
  await world.write((tx) => tx.table(roleBindingKind).delete(binding));
  assertRejected(await inspect(path));
});

test("a deleted binding stops pulls", { skip }, async () => {
  const image = localImage("revoked");
  const path = at(world.root, "revoked");
  assertSuccess(await push(image.name, path, await member("registry.push")));
  const puller = await member("registry.pull");
  assert.equal(assertSuccess(await inspect(path, puller)), image.digest);
  await world.write((tx) => tx.table(roleBindingKind).delete(puller.binding));
  assertRejected(await inspect(path, puller));
});

test("a verified organisation is reached by its name, and no other is", { skip }, async () => {
  const image = localImage("named");
  const { group } = await world.harness.organisation("named");
  const pusher = await member("registry.push", group);
  const { group: impostor } = await world.harness.organisation("example.org");
  await world.write((tx) => tx.table(groupKind).update(group, { name: "example.org" }, Date.now()));
  assertRejected(await push(image.name, at("example.org", "named"), pusher));
  await world.write((tx) => verifyGroup(tx, group, undefined, { ids: randomIds, nowMs: Date.now() }));
  assertSuccess(await push(image.name, at("example.org", "named"), pusher));
  assertRejected(await push(image.name, at("example.org", "named"), await member("registry.push", impostor)));
  // skopeo prints the status of what it got in place of a token, and no more.
  for (const outcome of [
    await push(image.name, at(group, "named"), pusher),
    await inspect(at(group, "named"), pusher),
  ]) {
    assert.notEqual(outcome.status, 0);
    assert.match(outcome.stderr, /invalid status code from registry 403 \(Forbidden\)/);
  }
});

test("blobs of a foreign repo are not mounted", { skip }, async () => {
  const image = localImage("secret of others");
  assertSuccess(await push(image.name, at(world.foreign, "secret"), await member("registry.push", world.foreign)));
  const { password } = await member("registry.push");
  const source = `${world.foreign}/secret`;
  const query = new URLSearchParams({ service: "arbor" });
  query.append("scope", `repository:${source}:pull`);
  query.append("scope", `repository:${world.root}/thief:pull,push`);
  const basic = Buffer.from(`_token:${password}`).toString("base64");
  const response = await fetch(`${world.url}/token?${query}`, { headers: { authorization: `Basic ${basic}` } });
  const { token } = (await response.json()) as { token: string };
  assert.deepEqual(claimsOf(token).access, [
    { type: "repository", name: `${world.root}/thief`, actions: ["pull", "push"] },
  ]);
  const mount = await fetch(
    `${registry.url}/v2/${world.root}/thief/blobs/uploads/?mount=${image.layer}&from=${encodeURIComponent(source)}`,
    { method: "POST", headers: { authorization: `Bearer ${token}` } },
  );
  // A registry that mounts answers 201. This one does not look for the source, and clients upload instead.
  assert.equal(mount.status, 401);
  const stolen = await fetch(`${registry.url}/v2/${world.root}/thief/blobs/${image.layer}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(stolen.status, 404);
});

test("a copy between two of the caller's repos mounts what it may", { skip }, async () => {
  const image = localImage("mine");
  const pusher = await member("registry.push");
  const creds = `${pusher.user}:${pusher.password}`;
  assertSuccess(await push(image.name, at(world.root, "one"), pusher));
  const copy = ["copy", ...PLAIN, "--src-creds", creds, "--dest-creds", creds];
  assertSuccess(await skopeo([...copy, at(world.root, "one"), at(world.root, "two")]));
  assert.equal(assertSuccess(await inspect(at(world.root, "two"), pusher)), image.digest);
});

test("a token with its own key is rejected", { skip }, async () => {
  const image = localImage("attacker");
  const pusher = await member("registry.push");
  assertSuccess(await push(image.name, at(world.root, "attacked"), pusher));
  const scope = `repository:${world.root}/attacked:pull`;
  const basic = Buffer.from(`_token:${pusher.password}`).toString("base64");
  const response = await fetch(`${world.url}/token?${new URLSearchParams({ service: "arbor", scope })}`, {
    headers: { authorization: `Basic ${basic}` },
  });
  const { token } = (await response.json()) as { token: string };
  const read = async (bearer: string) => {
    const url = `${registry.url}/v2/${world.root}/attacked/manifests/latest`;
    const accept = "application/vnd.oci.image.manifest.v1+json";
    return (await fetch(url, { headers: { authorization: `Bearer ${bearer}`, accept } })).status;
  };
  assert.equal(await read(token), 200);
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const header = decodeProtectedHeader(token);
  const jwk = publicKey.export({ format: "jwk" });
  const claims = claimsOf(token);
  assert.equal(await read(signToken(header, claims, privateKey)), 401);
  assert.equal(await read(signToken({ ...header, jwk: { ...jwk, kid: header.kid } }, claims, privateKey)), 401);
  assert.equal(await read(signToken({ ...header, jwk }, claims, privateKey)), 401);
  // API tokens are signed with another key, and are none of the registry's.
  assert.equal(await read(pusher.password), 401);
});

test("the key that waits is trusted ahead of time, and the next one after a restart", { skip }, async () => {
  const image = localImage("rotated");
  const pusher = await member("registry.push");
  const path = at(world.root, "rotated");
  assertSuccess(await push(image.name, path, pusher));
  const rotate = async () => {
    const { status, stdout, stderr } = await arbor([
      ...["admin", "keys", "rotate", "--purpose", "registry", "--data", world.data],
    ]);
    assert.equal(status, 0, stderr);
    // A running service looks at its keys every second.
    const { keys } = world.harness.app.installation;
    for (let i = 0; i < 100 && keys.getRegistrySigningKey().kid !== stdout.trim(); i++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    assert.equal(keys.getRegistrySigningKey().kid, stdout.trim());
  };
  await rotate();
  assert.equal(assertSuccess(await inspect(path, pusher)), image.digest);
  await rotate();
  assertRejected(await inspect(path, pusher));
  const restarted = await startRegistry({ data: world.data });
  try {
    const elsewhere = path.replace(registry.host, restarted.host);
    assertSuccess(await push(image.name, elsewhere, pusher));
  } finally {
    await restarted.stop();
  }
});
