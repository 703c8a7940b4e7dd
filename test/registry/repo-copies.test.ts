// Repos that are copied from another: which that may be, and what they share.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { seedAnonymous } from "../../src/iam/identities/identity.js";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { ANONYMOUS_UID, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { invalid } from "../contract/expectations.js";
import type { RestResponse } from "../contract/rest.js";
import { type RegistryWorld, startRegistryWorld } from "./registry-world.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const shared = {
  catalogTier: "CATALOG_TIER_BASE",
  bundles: ["fips", "base"],
  aliases: ["b:1", "a:2"],
  activeTags: ["b", "a"],
};

let world: RegistryWorld;
let source: string;
let foreign: string;
before(async () => {
  world = await startRegistryWorld();
  source = await world.repo({ name: "source", description: "the source", ...shared });
  foreign = await world.repo({ name: "foreign" }, world.foreign);
  await world.write(async (tx) => {
    const row = await tx.table(repoKind).find(source);
    if (row) await tx.table(repoKind).replace({ ...row, readme: "# Source" });
    await tx.table(groupKind).update(world.root, { name: "verified.example" }, 1_000);
    await verifyGroup(tx, world.root, undefined, { ids: randomIds, nowMs: 1_000 });
  });
});
after(() => world.stop());

let made = 0;
const fresh = (fields: object = {}) => ({ name: `copy-${made++}`, ...fields });
const copyOf = (uid: string, more: object = {}) => fresh({ sync_config: { source: uid }, ...more });
const patch = (uid: string, body: object, mask?: string) =>
  world.call("PATCH", `/repos/${uid}${mask === undefined ? "" : `?updateMask=${mask}`}`, body);
const syncIn = (json: RestResponse["json"]) => (json?.sync_config ?? {}) as { source: string; expirationTime: string };
const noSource = invalid([
  "sync_config.source",
  "sync_config.source must name another repo, from which the caller may pull",
]);

describe("the source of a copy", () => {
  const names: readonly { name: string; of: () => string }[] = [
    { name: "its uid", of: () => source },
    { name: "its name in the root of the organisation", of: () => "source" },
    { name: "its path in the registry", of: () => `${world.root}/source` },
    { name: "its path below a verified name", of: () => "verified.example/source" },
    { name: "the reference of an image", of: () => `registry.example:5000/verified.example/source:1.2` },
    {
      name: "a reference by digest",
      of: () => `localhost/verified.example/source:1.2@sha256:${"a".repeat(64)}`,
    },
  ];
  for (const { name, of } of names) {
    it(`may be named by ${name} and is shown as its uid`, async () => {
      const { json, status, text } = await world.call("POST", `/repos/${world.child}`, copyOf(of()));
      assert.equal(status, 200, text);
      assert.equal(syncIn(json).source, source);
    });
  }

  const refused: readonly { name: string; of: () => string }[] = [
    { name: "is not there", of: () => `${world.root}/${"0".repeat(16)}` },
    { name: "belongs to others", of: () => foreign },
    { name: "belongs to others, by path", of: () => `${world.foreign}/foreign` },
    { name: "has a name that nobody has", of: () => "nobody" },
    { name: "is below a name that was not verified", of: () => "theirs/foreign" },
    { name: "is no reference at all", of: () => "//:@" },
  ];
  for (const { name, of } of refused) {
    it(`that ${name} is rejected, always in the same words`, async () => {
      assert.deepEqual((await world.call("POST", `/repos/${world.child}`, copyOf(of()))).outcome, noSource);
    });
  }

  it("cannot be the copy itself", async () => {
    const uid = await world.repo(fresh());
    assert.deepEqual((await patch(uid, { sync_config: { source: uid } })).outcome, noSource);
  });

  it("must be one that the caller or anonymous may pull from", async () => {
    const editor = await world.caller(["repo.create", "repo.update", "repo.list"], world.child);
    const attempt = () => world.call("POST", `/repos/${world.child}`, copyOf(source), editor);
    assert.deepEqual((await attempt()).outcome, noSource);
    await world.write((tx) => seedAnonymous(tx, 1_000));
    await world.harness.bind(ANONYMOUS_UID, "registry.pull", world.root);
    assert.equal((await attempt()).status, 200);
  });
});

describe("a copy", () => {
  it("has what its source has, until copying ends 14 days later", async () => {
    const { json } = await world.call("POST", `/repos/${world.child}`, copyOf(source));
    for (const [field, value] of Object.entries({ ...shared, description: "the source" }))
      assert.deepEqual(json?.[field], value);
    const { expirationTime } = syncIn(json);
    assert.equal(Date.parse(expirationTime) - Date.parse(String(json?.createTime)), 14 * DAY_MS);
    assert.equal((await world.call("GET", `/repos/${json?.uid}/readme`)).json?.content, "# Source");
  });

  it("may have a description of its own", async () => {
    const { json } = await world.call("POST", `/repos/${world.child}`, copyOf(source, { description: "mine" }));
    assert.equal(json?.description, "mine");
  });

  const differing: Readonly<Record<string, unknown>> = {
    catalogTier: "CATALOG_TIER_AI",
    bundles: ["base", "fips"],
    aliases: ["c:1"],
    activeTags: ["a", "b"],
  };
  for (const [field, value] of Object.entries(differing)) {
    it(`has no ${field} of its own`, async () => {
      const broken = invalid([field, `${field} of a repo that is copied must be that of its source`]);
      const own = { [field]: value };
      assert.deepEqual((await world.call("POST", `/repos/${world.child}`, copyOf(source, own))).outcome, broken);
      const uid = await world.repo(copyOf(source));
      assert.deepEqual((await patch(uid, own)).outcome, broken);
      const inherited = shared[field as keyof typeof shared];
      assert.equal((await patch(uid, { [field]: inherited })).status, 200);
      // An absent field is no conflict with the source.
      assert.deepEqual((await patch(uid, {}, field)).json?.[field], inherited);
    });
  }

  it("takes the present values of its source where a request names them, and no others", async () => {
    const origin = await world.repo(fresh(shared));
    const uid = await world.repo(copyOf(origin));
    const now = { bundles: ["ai"], catalogTier: "CATALOG_TIER_AI" };
    assert.equal((await patch(origin, { ...now, aliases: ["z:1"] })).status, 200);
    assert.deepEqual((await world.call("GET", `/repos/${uid}`)).json?.bundles, shared.bundles, "it keeps what it has");
    const { json, text } = await patch(uid, now);
    const taken = [json?.bundles, json?.catalogTier, json?.aliases];
    assert.deepEqual(taken, [now.bundles, now.catalogTier, shared.aliases], text);
    const both = await patch(uid, { bundles: shared.bundles, aliases: ["z:1"] });
    const rule = "bundles of a repo that is copied must be that of its source";
    assert.deepEqual(both.outcome, invalid(["bundles", rule]), "one value of each");
    assert.equal((await world.call("DELETE", `/repos/${origin}`)).status, 200);
    const gone = await patch(uid, { aliases: ["z:1"] });
    assert.deepEqual(gone.outcome, invalid(["aliases", rule.replace("bundles", "aliases")]));
    assert.equal((await patch(uid, now)).status, 200, "what it has stays allowed");
  });

  it("keeps its source and its time when another field of the copy changes", async () => {
    const uid = await world.repo(copyOf(source));
    const was = (await world.call("GET", `/repos/${uid}`)).json?.sync_config as object;
    world.harness.skewMs += 60_000;
    const started = { ...was, google: "europe-docker.pkg.dev/p/r" };
    const { json } = await patch(uid, { sync_config: { google: started.google } }, "sync_config.google");
    assert.deepEqual(json?.sync_config, started);
    const again = await patch(uid, { sync_config: { source: "source", expirationTime: "2999-01-01T00:00:00Z" } });
    assert.deepEqual(again.json?.sync_config, started);
  });

  it("that is sent without the copied fields keeps them", async () => {
    const uid = await world.repo(copyOf(source));
    const { json } = await patch(uid, { name: `whole-${made++}`, sync_config: { source } }, "*");
    for (const [field, value] of Object.entries(shared)) assert.deepEqual(json?.[field], value);
  });

  it("takes the fields of its source and keeps them", async () => {
    const uid = await world.repo(fresh({ bundles: ["ai"], description: "old" }));
    const { json } = await patch(uid, { sync_config: { source } });
    for (const [field, value] of Object.entries({ ...shared, description: "old" }))
      assert.deepEqual(json?.[field], value);
    const free = await patch(uid, {}, "sync_config");
    assert.equal(free.json?.sync_config, undefined);
    assert.deepEqual(free.json?.bundles, shared.bundles);
    assert.deepEqual((await patch(uid, { bundles: ["ai"] })).json?.bundles, ["ai"]);
  });
});
