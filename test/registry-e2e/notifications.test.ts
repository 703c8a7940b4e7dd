// A push to a stock registry reaches the service, also when the service was down or got no event.
import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { openInstallation } from "../../src/app/installation.js";
import { resolveSettings } from "../../src/config/config.js";
import { randomIds } from "../../src/kernel/ids.js";
import { createRegistryClient } from "../../src/registry/oci/registry-client.js";
import { createInternalTokens } from "../../src/registry/oci/registry-token.js";
import { arbor, type Organisation, type Service, startHost, startService } from "../e2e/process.js";
import { tempDir } from "../support/temp-dir.js";
import { type BareRegistry, startBareRegistry } from "./bare-registry.js";
import { type MadeImage, makeImage, push } from "./images.js";
import { registryMissing as skip, startRegistry } from "./registry.js";

const SECRET = "the secret of a test, which is long enough".replaceAll(" ", "-");
const [data, storage, images] = [tempDir(), tempDir(), tempDir()];
const secretFile = join(data, "registry.secret");

let owner: Organisation;
let token: string;
let service: Service;
let registry: BareRegistry;

before(async () => {
  if (skip) return;
  writeFileSync(secretFile, `${SECRET}\n`);
  chmodSync(secretFile, 0o600);
  const host = startHost();
  owner = await host.bootstrap(data, "acme");
  host.close();
  service = await startService(data, "--registry-secret-file", secretFile);
  // A token names the service, whose address is bound only now.
  token = (await arbor("admin", "token", "--identity", owner.identity, "--data", data)).stdout.trim();
  registry = await startBareRegistry({
    directory: storage,
    notify: { url: `${service.url}/registry/notifications`, secret: SECRET },
  });
});
after(async () => {
  if (skip) return;
  await registry.stop();
  if (service.alive()) await service.stop();
});

interface Named {
  readonly uid: string;
  readonly name: string;
  readonly digest: string;
}

async function list(kind: "repos" | "tags", below = owner.group): Promise<Named[]> {
  const query = new URLSearchParams({ "uidp.descendants_of": below, page_size: "200" });
  const response = await fetch(`${service.url}/registry/v2beta1/${kind}?${query}`, {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(response.status, 200, await response.clone().text());
  return ((await response.json()) as Record<string, Named[] | undefined>)[kind] ?? [];
}

/** What the tags of a repo point to, as the API shows them. */
async function tagsOf(name: string): Promise<Record<string, string> | undefined> {
  const repo = (await list("repos")).find((one) => one.name === name);
  if (repo === undefined) return undefined;
  return Object.fromEntries((await list("tags", repo.uid)).map((tag) => [tag.name, tag.digest]));
}

/** Waits until the tags of a repo are these, at most `withinMs`. */
async function shows(name: string, tags: Record<string, string> | undefined, withinMs: number): Promise<void> {
  const endMs = performance.now() + withinMs;
  for (;;) {
    const found = await tagsOf(name);
    try {
      return assert.deepEqual(found, tags);
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

let made = 0;
function image(architectures?: readonly string[]): MadeImage {
  return makeImage(join(images, String(++made)), `image ${made}`, architectures);
}

const nameOf = (repo: string, tag: string) => `${registry.host}/${owner.group}/${repo}:${tag}`;

/** Deletes an image with its tags; this registry does not delete a tag alone. */
async function deleteImage(repo: string, digest: string): Promise<void> {
  const url = `${registry.url}/v2/${owner.group}/${repo}/manifests/${digest}`;
  const { status } = await fetch(url, { method: "DELETE" });
  assert.equal(status, 202);
}

async function restart(): Promise<void> {
  const { host } = new URL(service.url);
  service = await startService(data, "--registry-secret-file", secretFile, "--listen", host);
}

test("a push is visible within a second, and so is the move of a tag", { skip }, async () => {
  const [first, second] = [image(), image(["amd64", "arm64"])];
  await push(first, nameOf("app", "latest"));
  await shows("app", { latest: first.digest }, 1_000);
  await push(second, nameOf("app", "latest"));
  await push(second, nameOf("app", "v2"));
  await shows("app", { latest: second.digest, v2: second.digest }, 1_000);
});

test("with an image its tags disappear, and others stay", { skip }, async () => {
  const [kept, single, gone] = [image(), image(), image()];
  await push(kept, nameOf("deleting", "kept"));
  await push(single, nameOf("deleting", "single"));
  for (const tag of ["one", "two"]) await push(gone, nameOf("deleting", tag));
  const [staying, both] = [{ kept: kept.digest }, { one: gone.digest, two: gone.digest }];
  await shows("deleting", { ...staying, ...both, single: single.digest }, 1_000);
  await deleteImage("deleting", single.digest);
  await shows("deleting", { ...staying, ...both }, 1_000);
  await deleteImage("deleting", gone.digest);
  await shows("deleting", staying, 1_000);
});

test("what is pushed while the service is down arrives after its start", { skip }, async () => {
  const [before, meanwhile] = [image(), image()];
  await push(before, nameOf("down", "latest"));
  await shows("down", { latest: before.digest }, 1_000);
  await service.stop();
  await push(meanwhile, nameOf("down", "latest"));
  await push(meanwhile, nameOf("down", "new"));
  await restart();
  await shows("down", { latest: meanwhile.digest, new: meanwhile.digest }, 5_000);
});

test("sync repairs what was lost with a registry that went down before it could tell", { skip }, async () => {
  const [before, deleted, meanwhile] = [image(), image(), image()];
  for (const tag of ["moved", "same"]) await push(before, nameOf("lost", tag));
  await push(deleted, nameOf("lost", "deleted"));
  const known = { moved: before.digest, deleted: deleted.digest, same: before.digest };
  await shows("lost", known, 1_000);
  await service.stop();
  await push(meanwhile, nameOf("lost", "moved"));
  await push(meanwhile, nameOf("lost", "new"));
  await push(meanwhile, `${registry.host}/nobody/app:latest`);
  await deleteImage("lost", deleted.digest);
  // Its undelivered events were in its memory alone.
  await registry.stop();
  registry = await startBareRegistry({ directory: storage });
  await restart();
  assert.deepEqual(await tagsOf("lost"), known);
  const synced = await arbor("registry", "sync", "--data", data, "--registry-url", registry.url);
  assert.equal(synced.code, 0, synced.stderr);
  assert.match(
    synced.stdout,
    /^repos and tags added or changed: 2\ntags removed: 1\nrepos that belong to no group: 1\n/m,
  );
  assert.match(synced.stdout, /tags\/s in .* MiB of memory$/m);
  assert.deepEqual(await tagsOf("lost"), { moved: meanwhile.digest, same: before.digest, new: meanwhile.digest });
  const again = await arbor("registry", "sync", "--data", data, "--registry-url", registry.url);
  assert.match(again.stdout, /^repos and tags added or changed: 0\ntags removed: 0\n/m);
});

test("sync reports missing settings and an unreachable registry", { skip }, async () => {
  const without = await arbor("registry", "sync", "--data", data);
  assert.deepEqual([without.code, without.stdout], [6, ""]);
  assert.match(without.stderr, /--registry-url/);
  const away = await arbor("registry", "sync", "--data", data, "--registry-url", "http://127.0.0.1:1");
  assert.equal(away.code, 8);
  assert.match(away.stderr, /the registry cannot be reached/);
});

test("the secret is required, and more than 1 MiB is rejected", { skip }, async () => {
  const post = (authorization: string, body: string) =>
    fetch(`${service.url}/registry/notifications`, { method: "POST", headers: { authorization }, body });
  const statuses = [
    (await post("Bearer wrong", "{}")).status,
    (await post(`Bearer ${SECRET}`, "{}")).status,
    (await post(`Bearer ${SECRET}`, JSON.stringify({ events: [], more: " ".repeat(1024 * 1024) }))).status,
    (await post(`Bearer ${SECRET}`, JSON.stringify({ events: [], more: " ".repeat(1024 * 1000) }))).status,
  ];
  assert.deepEqual(statuses, [401, 400, 413, 200]);
  assert.ok(!(await service.stop()).stderr.includes(SECRET));
  const { host } = new URL(service.url);
  service = await startService(data, "--listen", host);
  assert.equal((await post(`Bearer ${SECRET}`, "{}")).status, 404);
});

test("a registry that trusts the service lets it read the catalog and every repo", { skip }, async () => {
  const trusting = await startRegistry({ data });
  const installation = await openInstallation({
    mode: "update",
    settings: resolveSettings({ flags: { data }, env: {} }),
  });
  try {
    assert.equal((await fetch(`${trusting.url}/v2/_catalog`)).status, 401);
    const { keys, clock } = installation;
    const deps = { keys, clock, ids: randomIds, issuer: service.url, service: "arbor" };
    const client = createRegistryClient({ url: trusting.url, token: createInternalTokens(deps) });
    const paths: string[] = [];
    for await (const path of client.listRepos("")) paths.push(path);
    assert.deepEqual([paths, await client.listTags("acme/app")], [[], []]);
    const foreign = createRegistryClient({
      url: trusting.url,
      token: createInternalTokens({ ...deps, service: "other" }),
    });
    await assert.rejects(foreign.listTags("acme/app"), { reason: "UNAVAILABLE", message: /answered 401/ });
  } finally {
    await installation.close();
    await trusting.stop();
  }
});
