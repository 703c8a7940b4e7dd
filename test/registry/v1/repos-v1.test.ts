// Repos, version 1, beside version 2: one resource with its readme, updated together.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { CatalogTier, type Repo, type RepoSchema } from "#gen/chainguard/platform/registry/repo_pb.js";
import { ReposService, CatalogTier as TierV2 } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { repoKind } from "../../../src/store/registry/repos.js";
import { type Wire, wireNames, wireOf } from "../../iam/v1/wires.js";
import { type RegistryWorld, startRegistryWorld } from "../registry-world.js";

const v1 = Registry.method;
const v2 = ReposService.method;

let world: RegistryWorld;
before(async () => {
  world = await startRegistryWorld();
});
after(() => world.stop());

let made = 0;
const fresh = () => `v1-${made++}`;
const pem = (what: string) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`;
// Lists in an order that is not theirs by name: it has to stay.
const shared = {
  catalogTier: CatalogTier.FIPS,
  bundles: ["fips", "base"],
  aliases: ["b:1", "a:2"],
  activeTags: ["z", "a"],
};
const overlay = {
  contents: {
    packages: ["curl"],
    runtimeRepositories: ["https://packages.example"],
    runtimeKeyring: [{ name: "key.rsa.pub", content: pem("PUBLIC KEY") }],
  },
  environment: { A: "1" },
  annotations: { "org.example": "x" },
  accounts: {
    runAs: "app",
    users: [{ uid: 65532, userName: "app", gid: 7, groupName: "apps", shell: "/bin/sh", homeDir: "/home/app" }],
    groups: [{ gid: 7, groupName: "apps", members: ["app"] }],
  },
  certificates: { additional: [{ name: "ca.pem", content: pem("CERTIFICATE") }], providers: ["ca-certificates"] },
  guardedEntrypoint: true,
  preflight: [
    { tcp: "db:5432", path: "", timeout: "30s", interval: "500ms", onFailure: 1 },
    { tcp: "", path: "/ready", timeout: "", interval: "", onFailure: 2 },
  ],
  commandOverride: { command: ["sh", "-c", "true"], mode: 3 },
  failMode: 2,
};

/** A message as plain values, times and all that is empty left out. */
function plain(message: object | undefined): unknown {
  return JSON.parse(
    JSON.stringify(message, (key, value) => (/^\$|^(id|uid)$|Time$|At$/.test(key) ? undefined : value)),
  );
}

for (const name of wireNames) {
  describe(`repos over ${name}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, world.owner.token);
    });
    after(() => wire.close());
    const create = (repo: MessageInitShape<typeof RepoSchema>, token?: string, preventExisting = false) =>
      wire.call(v1.createRepo, { parentId: world.child, repo, preventExisting }, token);
    const readList = async (filter: MessageInitShape<typeof v1.listRepos.input>, token?: string) =>
      (await wire.call(v1.listRepos, filter, token)).items;

    it("are the same in both versions, whichever wrote them", async () => {
      const fields = { name: fresh(), description: "d", readme: "# Hello", ...shared, customOverlay: overlay };
      const mine = await create(fields);
      const { customOverlay: _, ...shown } = plain(mine) as Record<string, unknown>;
      assert.deepEqual(shown, { name: fields.name, description: "d", readme: "# Hello", ...shared });
      assert.deepEqual(mine.customOverlay?.accounts?.users[0]?.userName, "app");
      assert.deepEqual([mine.createdAt, mine.createTime], [mine.createTime, mine.createdAt]);
      const theirs = await wire.call(v2.getRepo, { uid: mine.id });
      assert.deepEqual(
        [theirs.catalogTier, theirs.bundles, theirs.aliases, theirs.activeTags, theirs.createTime, theirs.updateTime],
        [TierV2.FIPS, shared.bundles, shared.aliases, shared.activeTags, mine.createdAt, mine.updatedAt],
      );
      assert.equal(theirs.customOverlay?.accounts?.users[0]?.username, "app");
      assert.equal(theirs.customOverlay?.accounts?.groups[0]?.groupname, "apps");
      for (const shown of [mine, theirs].map((one) => plain(one.customOverlay) as typeof overlay)) {
        const { guardedEntrypoint, preflight, commandOverride, failMode } = shown;
        const { guardedEntrypoint: a, preflight: b, commandOverride: c, failMode: d } = overlay;
        assert.deepEqual([guardedEntrypoint, preflight, commandOverride, failMode], [a, b, c, d]);
      }
      assert.equal((await wire.call(v2.getRepoReadme, { uid: mine.id })).content, "# Hello");
      await wire.call(v2.updateRepo, {
        repo: { uid: mine.id, description: "by v2" },
        updateMask: { paths: ["description"] },
      });
      const [again] = await readList({ id: mine.id });
      assert.deepEqual(plain(again), { ...(plain(mine) as object), description: "by v2" });
      const put = await wire.call(v1.updateRepo, { ...fields, id: mine.id, description: "by v1" });
      assert.deepEqual(plain(put), { ...(plain(mine) as object), description: "by v1" });
      assert.equal((await wire.call(v2.getRepo, { uid: mine.id })).description, "by v1");
      await wire.call(v1.deleteRepo, { id: mine.id });
      assert.match(await wire.expectError(v2.getRepo, { uid: mine.id }), /there is no repo/);
      assert.match(await wire.expectError(v1.deleteRepo, { id: mine.id }), /^Not found: repo: there is no repo/);
    });

    it("lose what an update leaves out, the readme too", async () => {
      const repo = await create({ name: fresh(), description: "d", readme: "# R", ...shared });
      const bare = { name: repo.name, description: "", catalogTier: 0, bundles: [], aliases: [], activeTags: [] };
      const updated = await wire.call(v1.updateRepo, { id: repo.id, name: repo.name });
      assert.deepEqual(plain(updated), { ...bare, readme: "" });
    });

    it("show their readme to those alone who may read it", async () => {
      const repo = await create({ name: fresh(), readme: "# R" });
      for (const [capabilities, readme] of [
        [["repo.update"], ""],
        [["repo.update", "repo.list"], "# R"],
      ] as const) {
        const { token } = await world.caller(capabilities);
        const { id, name } = repo;
        const shown = await wire.call(v1.updateRepo, { id, name, readme: "# R" }, token);
        assert.equal(shown.readme, readme);
        // What somebody has read can be sent back, and changes nothing.
        await wire.call(v1.updateRepo, { id, name, readme: shown.readme }, token);
        assert.equal((await wire.call(v2.getRepoReadme, { uid: id })).content, "# R");
      }
    });

    it("have a readme that asks for no more than the repo does, unlike in version 2", async () => {
      const creator = await world.caller(["repo.create", "repo.list"]);
      const updater = await world.caller(["repo.update", "repo.list"]);
      const repo = await create({ name: fresh(), readme: "# Hello" }, creator.token);
      assert.equal(repo.readme, "# Hello");
      const change = { id: repo.id, name: repo.name, description: "changed", readme: "# Mine" };
      assert.match(
        await wire.expectError(v1.updateRepo, change, creator.token),
        /^Permission denied: repo.update at \S+ \(/,
      );
      const creation = { parentId: world.child, repo: { name: fresh(), readme: "x" } };
      assert.match(
        await wire.expectError(v1.createRepo, creation, updater.token),
        /^Permission denied: repo.create at \S+ \(/,
      );
      const put = await wire.call(v1.updateRepo, change, updater.token);
      assert.deepEqual([put.readme, put.description], ["# Mine", "changed"]);
      const own = { repoReadme: { uid: repo.id, content: "# V2" }, updateMask: { paths: ["content"] } };
      for (const { token } of [updater, world.owner]) {
        const refused = await wire.expectError(v2.updateRepoReadme, own, token);
        assert.match(refused, /^Permission denied: repo.update and repo.internal.admin at /);
      }
    });

    it("keep all they are when a readme is rejected", async () => {
      const repo = await create({ name: fresh(), readme: "# Safe" });
      const change = { id: repo.id, name: repo.name, description: "changed", readme: "<script>" };
      const rule = "Invalid argument: readme: readme must not contain unsafe HTML";
      assert.equal(await wire.expectError(v1.updateRepo, change), rule);
      const name = fresh();
      const creation = { parentId: world.child, repo: { name, readme: "<script>" } };
      assert.equal(await wire.expectError(v1.createRepo, creation), rule);
      assert.deepEqual((await readList({ id: repo.id }))[0], repo);
      assert.deepEqual(await readList({ name }), []);
    });

    it("are replaced when created again, unless that is forbidden or the caller may only create", async () => {
      const repo = await create({ name: fresh(), ...shared });
      const again = await create({ name: repo.name, description: "again" });
      assert.deepEqual([again.id, again.description, again.bundles], [repo.id, "again", []]);
      const request = { parentId: world.child, repo: { name: repo.name }, preventExisting: true };
      assert.equal(await wire.expectError(v1.createRepo, request), `Already exists: repo: ${repo.id}`);
      const creator = await world.caller(["repo.create"]);
      const attempt = wire.expectError(v1.createRepo, { ...request, preventExisting: false }, creator.token);
      assert.equal(await attempt, `Already exists: repo: ${repo.id}`);
    });

    it("that are copies have the fields of their source, and show those that their caller has sent", async () => {
      const apart = await world.group();
      const repo = { name: fresh(), readme: "# Source", ...shared };
      const source = await wire.call(v1.createRepo, { parentId: apart, repo });
      const syncConfig = { source: source.id, google: "pkg.dev/a" };
      const copy = await create({ name: fresh(), syncConfig });
      const none = { catalogTier: 0, bundles: [], aliases: [], activeTags: [] };
      const leftOut = { description: "", readme: "", ...none };
      assert.deepEqual(plain({ ...copy, syncConfig: undefined }), { name: copy.name, ...leftOut });
      const expiration = copy.syncConfig?.expiration;
      assert.ok(expiration);
      const { name: copyName, id } = copy;
      for (const fields of [{}, shared, { readme: "# Source", bundles: shared.bundles }, {}]) {
        const seconds = { source: source.id, expiration: { seconds: expiration.seconds, nanos: 0 } };
        const put: Repo = await wire.call(v1.updateRepo, { ...fields, id, name: copyName, syncConfig: seconds });
        assert.deepEqual(plain({ ...put, syncConfig: undefined }), { name: copyName, ...leftOut, ...fields });
        assert.deepEqual((await readList({ id }))[0], put);
        assert.deepEqual([put.syncConfig?.google, put.syncConfig?.expiration], ["", expiration]);
        const effective = await wire.call(v2.getRepo, { uid: id });
        assert.deepEqual([effective.bundles, effective.aliases], [shared.bundles, shared.aliases]);
        assert.deepEqual([effective.catalogTier, effective.activeTags], [TierV2.FIPS, shared.activeTags]);
        assert.equal((await wire.call(v2.getRepoReadme, { uid: id })).content, "# Source");
      }
      const own = { id, name: copyName, syncConfig, bundles: ["ai"] };
      assert.match(
        await wire.expectError(v1.updateRepo, own),
        /^Invalid argument: bundles: bundles of a repo that is copied/,
      );
      const readme = { id, name: copyName, syncConfig, readme: "own" };
      assert.match(await wire.expectError(v1.updateRepo, readme), /^Invalid argument: readme: readme of a repo/);
      await wire.call(v1.updateRepo, { ...repo, id: source.id, bundles: ["ai"] });
      const followed = await wire.call(v1.updateRepo, own);
      assert.deepEqual([followed.bundles, followed.aliases], [["ai"], []], "the present value of its source");
      assert.deepEqual((await wire.call(v2.getRepo, { uid: id })).aliases, shared.aliases);
      const count = async (token?: string) =>
        (await wire.call(v1.getRepoCountBySource, { id: source.id }, token)).count;
      assert.equal(await count(), 1n);
      const viewer = await world.caller(["repo.list"], apart);
      assert.equal(await count(viewer.token), 0n, "the copy is out of sight");
      const free = await wire.call(v1.updateRepo, { id, name: copyName });
      assert.deepEqual([free.syncConfig, free.bundles, await count()], [undefined, [], 0n]);
    });

    it("take no value of how they are copied that would not be stored", async () => {
      const source = await create({ name: fresh() });
      const copy = await create({ name: fresh(), syncConfig: { source: source.id } });
      // A minute, because the service compares whole seconds with the time at which it sets it.
      const later = { seconds: (copy.syncConfig?.expiration?.seconds ?? 0n) + 60n };
      const service = "is set by the service alone";
      const rows: readonly (readonly [object, string])[] = [
        [{ expiration: later }, `expiration: expiration ${service}: 14 days from the start of the copy`],
        [{ gracePeriod: true }, `gracePeriod: gracePeriod ${service}`],
        [{ uniqueTags: true }, `uniqueTags: uniqueTags ${service}`],
        [{ syncApks: true }, "syncApks: syncApks is no longer used"],
        [{ apkoOverlay: "{}" }, `apkoOverlay: apkoOverlay ${service}`],
      ];
      for (const [more, text] of rows) {
        const syncConfig = { source: source.id, ...more };
        const error = `Invalid argument: sync_config.${text}`;
        const update = { id: copy.id, name: copy.name, syncConfig };
        assert.equal(await wire.expectError(v1.updateRepo, update), error);
        const creation = { parentId: world.child, repo: { name: fresh(), syncConfig } };
        assert.equal(await wire.expectError(v1.createRepo, creation), error);
        assert.deepEqual(await readList({ name: creation.repo.name }), [], "nothing is created");
      }
      const goZero = { seconds: -62_135_596_800n };
      await create({ name: fresh(), syncConfig: { source: source.id, expiration: goZero } });
      assert.deepEqual((await readList({ id: copy.id }))[0], copy);
      const output = { source: source.id, expirationTime: later, gracePeriod: true };
      const repo = { uid: copy.id, syncConfig: output };
      const kept = await wire.call(v2.updateRepo, { repo, updateMask: { paths: ["sync_config"] } });
      assert.deepEqual(kept.syncConfig?.expirationTime, copy.syncConfig?.expiration);
      assert.equal(kept.syncConfig?.gracePeriod, false);
    });

    it("are listed and counted without pages, however many there are", async () => {
      const apart = await world.group();
      const source = await world.repo({ name: fresh() }, apart);
      const uids = Array.from({ length: 201 }, () => randomIds.newUid(apart)).sort();
      const times = { createTimeMs: 1_000, updateTimeMs: 1_000 };
      const copied = { config: { sync_config: { source } }, description: "", readme: "", ...times };
      await world.write(async (tx) => {
        for (const uid of uids) await tx.table(repoKind).insert({ ...copied, uid, groupUid: apart, name: fresh() });
      });
      const { token } = await world.caller(["repo.list"], apart);
      const ids = (await readList({}, token)).map(({ id }) => id);
      assert.deepEqual(ids, [...uids, source].sort());
      assert.equal((await wire.call(v1.getRepoCountBySource, { id: source }, token)).count, 201n);
    });

    it("are filtered by id, name and parent, and hidden from others", async () => {
      const repo = await create({ name: fresh() });
      const other = await world.repo({ name: repo.name }, world.grandchild);
      const ids = async (filter: MessageInitShape<typeof v1.listRepos.input>, token?: string) =>
        (await readList(filter, token)).map(({ id }) => id);
      assert.deepEqual(await ids({ name: repo.name }), [repo.id, other].sort());
      assert.deepEqual(await ids({ name: repo.name, uidp: { childrenOf: world.grandchild } }), [other]);
      assert.deepEqual(await ids({ id: repo.id, uidp: { descendantsOf: world.grandchild } }), []);
      assert.deepEqual(await ids({ id: repo.id }, world.foreignOwner.token), []);
      assert.match(await wire.expectError(v1.listRepos, { id: "x" }), /^Invalid argument: id: id must be an id/);
      const { token } = world.foreignOwner;
      assert.match(
        await wire.expectError(v1.deleteRepo, { id: repo.id }, token),
        /^Permission denied: repo.delete at /,
      );
      const counting = wire.expectError(v1.getRepoCountBySource, { id: repo.id }, token);
      assert.match(await counting, /^Permission denied: repo.list at /);
      const put = wire.expectError(v1.updateRepo, { id: repo.id, name: "x" }, world.foreignOwner.token);
      assert.match(await put, /^Permission denied: repo.update at /);
    });

    const broken: readonly (readonly [fields: MessageInitShape<typeof RepoSchema>, message: RegExp])[] = [
      [{ name: "Upper" }, /^Invalid argument: name: name must match/],
      [{ name: "a\u0001b" }, /^Invalid argument: name: name must/],
      [{ name: "a", catalogTier: 3 as CatalogTier }, /^Invalid argument: catalogTier: /],
      [{ name: "a", catalogTier: 10 as CatalogTier }, /^Invalid argument: catalogTier: /],
      [{ name: "a", bundles: ["none"] }, /^Invalid argument: bundles: bundles must each be one of/],
      [{ name: "a", activeTags: ["-"] }, /^Invalid argument: activeTags: /],
      [{ name: "a", syncConfig: {} }, /^Invalid argument: sync_config: sync_config.source is required/],
      [
        { name: "a", customOverlay: { accounts: { users: [{ userName: "a", uid: 2 ** 31 }] } } },
        /^Invalid argument: customOverlay: customOverlay.accounts.users must each have .* from 0 to 2147483647/,
      ],
    ];
    for (const [fields, message] of broken) {
      it(`are rejected with ${JSON.stringify(fields)}`, async () => {
        assert.match(await wire.expectError(v1.createRepo, { parentId: world.child, repo: fields }), message);
      });
    }
  });
}
