// Habits of published clients of the registry, which speak version 1: create or
// update by name, lists in the order written, tags that point at nothing yet.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { bindIdentity } from "../../src/iam/operator/operate.js";
import { createOperatorRole } from "../../src/iam/operator/roles.js";
import { randomIds } from "../../src/kernel/ids.js";
import { digestOf, type RegistryWorld, startRegistryWorld } from "../registry/registry-world.js";
import { connectPublished, type Plain, type PublishedClient } from "./published-client.js";

const registry = "registry.Registry";
const capabilities = ["groups.list", "repo.create", "repo.update", "repo.list", "repo.delete"];
const deployments = ["create", "update", "list"].map((verb) => `registry.deployments.${verb}`);
const tags = ["tag.create", "tag.update", "tag.list", "tag.delete"];

let world: RegistryWorld;
let client: PublishedClient;
before(async () => {
  world = await startRegistryWorld();
  const caller = await world.caller([...capabilities, ...tags]);
  // No role of an organisation has the rights on deployments; the operator gives them.
  await world.write(async (tx) => {
    const context = { ids: randomIds, nowMs: Date.now() };
    const values = { name: "deployer", description: "", capabilities: deployments };
    const { uid: role } = await createOperatorRole(tx, values, context);
    await bindIdentity(tx, { identity: caller.uid, role, group: world.root, internal: true }, context);
  });
  client = connectPublished(world.url, caller.token);
});
after(async () => {
  client.close();
  await world.stop();
});

const items = async (list: string, filter: object) =>
  (await client.answer(`${registry}.${list}`, filter)).items as readonly Plain[];

// What the provider does when it is told to manage a repo.
async function createOrUpdate(parentId: string, repo: Plain): Promise<Plain> {
  const created = await client.call(`${registry}.CreateRepo`, { parentId, repo, preventExisting: true });
  if (created.code === "OK") return created.message;
  assert.equal(created.code, "ALREADY_EXISTS", created.text);
  const found = await items("ListRepos", { name: repo.name, uidp: { childrenOf: parentId } });
  assert.equal(found.length, 1);
  return client.answer(`${registry}.UpdateRepo`, { ...repo, id: found[0]?.id });
}

describe("repos", () => {
  const first = {
    ...{ name: "web", description: "the shop", catalogTier: "APPLICATION", readme: "# Web\n" },
    ...{ bundles: ["fips", "base"], aliases: ["z:1", "a:2"], activeTags: ["v2", "latest", "v1"] },
  };
  const second = {
    name: "web",
    description: "",
    catalogTier: "BASE",
    bundles: ["base"],
    aliases: [],
    activeTags: ["v3"],
  };
  const fieldsOf = ({ name, description = "", catalogTier, readme = "", bundles, aliases, activeTags }: Plain) => ({
    ...{ name, description, catalogTier, readme, bundles, aliases, activeTags },
  });

  it("are created, and updated once the name is taken, also where it is taken further down", async () => {
    const parent = await world.group();
    await createOrUpdate(await world.group(parent), { name: "web" });
    const created = await createOrUpdate(parent, first);
    assert.deepEqual(fieldsOf(created), first);
    const [listed] = await items("ListRepos", { id: created.id });
    assert.deepEqual(listed, created);
    const updated = await createOrUpdate(parent, second);
    assert.deepEqual([updated.id, fieldsOf(updated)], [created.id, { ...second, readme: "" }]);
    const { json } = await world.call("GET", `/repos/${String(created.id)}`);
    assert.deepEqual([json?.catalogTier, json?.activeTags, json?.description], ["CATALOG_TIER_BASE", ["v3"], ""]);
  });

  it("are replaced by a create that does not forbid it", async () => {
    const parent = await world.group();
    const { id } = await client.answer(`${registry}.CreateRepo`, { parentId: parent, repo: first });
    const again = await client.answer(`${registry}.CreateRepo`, { parentId: parent, repo: second });
    assert.deepEqual([again.id, fieldsOf(again)], [id, { ...second, readme: "" }]);
  });

  it("are looked for at the place above all groups, where there are none", async () => {
    assert.deepEqual(await items("ListRepos", { uidp: { childrenOf: "/" } }), []);
  });

  it("show where they are copied from in the same words, however often they are written and read", async () => {
    const parent = await world.group();
    const source = await world.repo({ name: "source" });
    const puller = await world.createBound("owner");
    const own = connectPublished(world.url, puller.token);
    const repo = { name: "copy", syncConfig: { source, google: "gar" } };
    const created = await own.answer(`${registry}.CreateRepo`, { parentId: parent, repo });
    const sent = { ...repo, id: created.id };
    for (let i = 0; i < 2; i++) {
      const updated = await own.answer(`${registry}.UpdateRepo`, sent);
      const [listed] = await items("ListRepos", { id: created.id });
      assert.deepEqual(updated.syncConfig, created.syncConfig);
      assert.deepEqual(listed?.syncConfig, created.syncConfig);
    }
    own.close();
    const { source: synced, google } = created.syncConfig as Plain;
    assert.deepEqual([synced, google], [source, "gar"]);
  });
});

describe("tags", () => {
  it("may point at nothing, and be updated to point at an image", async () => {
    const repoId = await world.repo({ name: "tagged" });
    const made = await client.answer(`${registry}.CreateTag`, { repoId, tag: { name: "latest" } });
    assert.equal(made.digest ?? "", "");
    const tag = { id: made.id, name: "latest", digest: digestOf("b"), bundles: ["z", "a"] };
    await client.answer(`${registry}.UpdateTag`, tag);
    const [listed] = await items("ListTags", { name: "latest", uidp: { childrenOf: repoId } });
    assert.deepEqual([listed?.id, listed?.digest, listed?.bundles], [made.id, digestOf("b"), ["z", "a"]]);
  });

  const families: readonly (readonly [tag: string, leftOut: string])[] = [
    [`sha256-${"a".repeat(64)}.sig`, "excludeReferrers"],
    ["1.2-20250131", "excludeDates"],
    ["1.2-r3", "excludeEpochs"],
  ];
  for (const [tag, leftOut] of families) {
    it(`like ${tag} are listed unless left out, and by version 2 only on request`, async () => {
      const repoId = await world.repo({ name: `family-${leftOut.toLowerCase()}` });
      for (const name of [tag, "1.2"]) await world.tag(repoId, name);
      const names = async (filter: object) =>
        (await items("ListTags", { uidp: { childrenOf: repoId }, ...filter })).map(({ name }) => name).sort();
      assert.deepEqual(await names({}), [tag, "1.2"].sort());
      assert.deepEqual(await names({ [leftOut]: true }), ["1.2"]);
      const { tags: visible } = await client.answer("registry.v2beta1.TagsService.ListTags", {
        uidp: { childrenOf: repoId },
      });
      assert.deepEqual(
        (visible as readonly Plain[]).map(({ name }) => name),
        ["1.2"],
      );
    });
  }
});

describe("deployments", () => {
  it("are created, updated where there is one, and deleted by leaving no chart", async () => {
    const repoId = await world.repo({ name: "deployed" });
    const [old, next] = [
      [{ repo: "https://charts.example/web" }],
      [{ repo: "oci://charts.example/web", chart: "web" }],
    ];
    await client.answer(`${registry}.CreateDeployment`, { parentId: repoId, charts: old });
    const again = await client.call(`${registry}.CreateDeployment`, { parentId: repoId, charts: next });
    assert.equal(again.code, "ALREADY_EXISTS");
    await client.answer(`${registry}.UpdateDeployment`, { repoId, charts: next });
    const { id, charts } = await client.answer(`${registry}.GetDeployment`, { repoId });
    assert.deepEqual([id, charts], [repoId, next]);
    await client.answer(`${registry}.UpdateDeployment`, { repoId, charts: [] });
    assert.equal((await client.call(`${registry}.GetDeployment`, { repoId })).code, "NOT_FOUND");
  });
});
