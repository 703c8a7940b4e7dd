// Tags, version 1, beside version 2: they may wait for their image, and have a past.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { tagKind } from "../../../src/store/registry/tags.js";
import { type Wire, wireNames, wireOf } from "../../iam/v1/wires.js";
import { digestOf, type RegistryWorld, startRegistryWorld } from "../registry-world.js";

const v1 = Registry.method;
const v2 = TagsService.method;

let world: RegistryWorld;
/** More tags than are read at once, in one repo that the tests do not change. */
const MANY = 1_203;
let large: string;
before(async () => {
  world = await startRegistryWorld();
  large = await newRepo();
  await world.write(async (tx) => {
    for (let i = 0; i < MANY; i++) {
      const uid = `${large}/${i.toString(16).padStart(16, "0")}`;
      const tag = { uid, repoUid: large, name: `n${i}`, digest: digestOf("c"), family: 0 as const };
      await tx
        .table(tagKind)
        .insert({ ...tag, deprecated: false, bundles: [], createTimeMs: 1_000, updateTimeMs: 1_000 });
    }
  });
});
after(() => world.stop());

let made = 0;
const newRepo = () => world.repo({ name: `v1-tags-${made++}` }, world.child);
const atMs = (ms: number) => ({ seconds: BigInt(Math.floor(ms / 1000)), nanos: (ms % 1000) * 1_000_000 });
const msOf = (time: Timestamp | undefined) => (time === undefined ? 0 : timestampMs(time));

for (const name of wireNames) {
  describe(`tags over ${name}`, () => {
    let wire: Wire;
    before(() => {
      wire = wireOf(name, world.url, world.owner.token);
    });
    after(() => wire.close());
    const create = (repoId: string, tag: MessageInitShape<typeof v1.updateTag.input>, token?: string) =>
      wire.call(v1.createTag, { repoId, tag }, token);
    const namesOf = async (filter: MessageInitShape<typeof v1.listTags.input>, token?: string) =>
      (await wire.call(v1.listTags, filter, token)).items.map((tag) => tag.name).sort();

    it("are the same in both versions, whichever wrote them", async () => {
      const repo = await newRepo();
      const fields = { name: "1.0", digest: digestOf("a"), deprecated: true, bundles: ["z", "a"] };
      const tag = await create(repo, fields);
      const { name: tagName, digest, deprecated, bundles } = tag;
      assert.deepEqual({ name: tagName, digest, deprecated, bundles }, fields);
      const other = await wire.call(v2.getTag, { uid: tag.id });
      assert.deepEqual(
        [other.name, other.digest, other.deprecated, other.bundles, other.updateTime],
        ["1.0", digest, true, bundles, tag.updatedAt],
      );
      assert.deepEqual([tag.lastUpdated, tag.createdAt], [tag.updatedAt, tag.updatedAt]);
      world.harness.skewMs += 1_000;
      await wire.call(v2.createTag, { parent: repo, tag: { name: "1.0", digest: digestOf("b") } });
      const [moved] = (await wire.call(v1.listTags, { id: tag.id })).items;
      assert.deepEqual([moved?.digest, moved?.bundles, moved?.createdAt], [digestOf("b"), [], tag.createdAt]);
      assert.ok(msOf(moved?.updatedAt) > msOf(tag.updatedAt));
      await wire.call(v1.deleteTag, { id: tag.id });
      assert.match(await wire.expectError(v2.getTag, { uid: tag.id }), /there is no tag/);
      assert.match(await wire.expectError(v1.deleteTag, { id: tag.id }), /^Not found: tag: there is no tag/);
    });

    it("may have no digest, are moved by a second create, and keep their image without a digest in the request", async () => {
      const repo = await newRepo();
      const tag = await create(repo, { name: "next", bundles: ["b"] });
      assert.equal(tag.digest, "");
      assert.equal((await wire.call(v2.getTag, { uid: tag.id })).digest, "");
      const moved = await create(repo, { name: "next", digest: digestOf("a") });
      assert.deepEqual([moved.id, moved.digest, moved.bundles], [tag.id, digestOf("a"), []]);
      assert.equal((await create(repo, { name: "next" })).digest, digestOf("a"));
      const put = await wire.call(v1.updateTag, { id: tag.id, name: "next", deprecated: true });
      assert.deepEqual([put.digest, put.deprecated], [digestOf("a"), true]);
      const reset = await wire.call(v1.updateTag, { id: tag.id, name: "next", digest: digestOf("b") });
      assert.deepEqual([reset.digest, reset.deprecated, reset.bundles], [digestOf("b"), false, []]);
    });

    it("are renamed as long as they point at nothing", async () => {
      const repo = await newRepo();
      const tag = await create(repo, { name: "old" });
      const renamed = await wire.call(v1.updateTag, { id: tag.id, name: "new-20250131" });
      assert.deepEqual([renamed.id, renamed.name], [tag.id, "new-20250131"]);
      assert.deepEqual(await namesOf({ uidp: { childrenOf: repo }, excludeDates: true }), []);
      const other = await create(repo, { name: "other", digest: digestOf("a") });
      const taken = await wire.expectError(v1.updateTag, { id: tag.id, name: "other" });
      assert.equal(taken, `Already exists: tag: ${other.id}`);
      const pointing = await wire.expectError(v1.updateTag, { id: other.id, name: "third", digest: digestOf("a") });
      assert.match(pointing, /^Precondition failed: cannot rename tag/);
    });

    it("are rejected with the names of their fields, and others cannot change them", async () => {
      const repo = await newRepo();
      const { id } = await create(repo, { name: "mine" });
      const expectUpdateError = (tag: MessageInitShape<typeof v1.updateTag.input>) =>
        wire.expectError(v1.updateTag, { id, ...tag });
      assert.match(await expectUpdateError({ name: "" }), /^Invalid argument: name: name must match/);
      assert.match(
        await expectUpdateError({ name: "mine", digest: "x" }),
        /^Invalid argument: digest: digest must be a digest/,
      );
      assert.match(await wire.expectError(v1.listTags, { digest: "x" }), /^Invalid argument: digest: /);
      const token = world.foreignOwner.token;
      assert.match(
        await wire.expectError(v1.updateTag, { id, name: "x" }, token),
        /^Permission denied: tag.update at /,
      );
      assert.match(await wire.expectError(v1.deleteTag, { id }, token), /^Permission denied: tag.delete at /);
      assert.match(
        await wire.expectError(v1.createTag, { repoId: repo, tag: { name: "x" } }, token),
        /^Permission denied: /,
      );
      assert.match(
        await wire.expectError(v1.listTagHistory, { parentId: id }, token),
        /^Permission denied: tag.list at /,
      );
      assert.match(await wire.expectError(v1.getRepoTagsSummary, { repoId: repo }, token), /^Permission denied: /);
      assert.deepEqual(await namesOf({ id }, token), []);
      const missing = `${id.slice(0, -16)}${"0".repeat(16)}`;
      assert.match(await wire.expectError(v1.updateTag, { id: missing, name: "x" }), /^Not found: tag: /);
    });

    it("are all listed, but for families left out, digests, names and times", async () => {
      const repo = await newRepo();
      const all = ["1.0-r1", "1.0_git1", "1.0_git1-r1", "latest", "latest-20250131", "sha256-aa-r1", "sha256-aa.sig"];
      for (const tag of all) {
        world.harness.skewMs += 10;
        await world.tag(repo, tag, tag === "latest" ? "b" : "a");
      }
      const uidp = { childrenOf: repo };
      const without = (...names: string[]) => all.filter((one) => !names.includes(one));
      for (const [filter, expected] of [
        [{}, all],
        [{ excludeReferrers: true }, without("sha256-aa.sig", "sha256-aa-r1")],
        [{ excludeDates: true }, without("latest-20250131")],
        [{ excludeVcsSnapshots: true }, without("1.0_git1", "1.0_git1-r1")],
        [{ excludeEpochs: true }, ["1.0_git1", "latest", "latest-20250131", "sha256-aa.sig"]],
        [{ excludeEpochs: true, excludeDates: true }, ["1.0_git1", "latest", "sha256-aa.sig"]],
        [{ excludeReferrers: true, excludeDates: true, excludeEpochs: true }, ["1.0_git1", "latest"]],
        [{ excludeReferrers: true, excludeDates: true, excludeEpochs: true, excludeVcsSnapshots: true }, ["latest"]],
        [{ digest: digestOf("a") }, without("latest")],
        [{ name: "1.0-r1" }, ["1.0-r1"]],
        [{ name: "1.0-r1", excludeEpochs: true }, []],
      ] as const) {
        assert.deepEqual(await namesOf({ uidp, ...filter }), expected, JSON.stringify(filter));
        assert.deepEqual(await namesOf({ uidp: { descendantsOf: repo }, ...filter }), expected, JSON.stringify(filter));
      }
      const { items } = await wire.call(v1.listTags, { uidp, name: "latest" });
      const updatedSince = items[0]?.updatedAt;
      assert.ok(updatedSince);
      assert.deepEqual(await namesOf({ uidp, updatedSince }), ["latest-20250131", "sha256-aa-r1", "sha256-aa.sig"]);
      const last = { seconds: 253_402_300_799n, nanos: 999_999_999 };
      assert.deepEqual(await namesOf({ uidp, updatedSince: last }), []);
    });

    it("are listed without pages, however many there are", async () => {
      const names = await namesOf({ uidp: { childrenOf: large } });
      assert.deepEqual([names.length, new Set(names).size], [MANY, MANY]);
    });

    it("are counted by their manifests until their repo is deleted", async () => {
      const repo = await newRepo();
      for (const tag of ["one", "two"]) await world.tag(repo, tag, "c");
      const count = (parentId: string, token?: string) => wire.call(v1.getManifestDigestCount, { parentId }, token);
      await world.tag(repo, "one-more", "d");
      await create(repo, { name: "pointless" });
      assert.equal((await count(repo)).count, 2n);
      await wire.call(v1.deleteRepo, { id: repo });
      assert.match(await wire.expectError(v1.getManifestDigestCount, { parentId: repo }), /there is no group or repo/);
    });

    it("are counted by their manifests below a group as well", async () => {
      const group = await world.group();
      assert.equal((await wire.call(v1.getManifestDigestCount, { parentId: group })).count, 0n);
      for (const digits of ["ab", "bc"]) {
        const repo = await world.repo({ name: `counted-${made++}` }, group);
        for (const digit of digits) await world.tag(repo, `t-${digit}`, digit);
      }
      assert.equal((await wire.call(v1.getManifestDigestCount, { parentId: group })).count, 3n);
    });

    it("have a past, oldest first, from one time to before another", async () => {
      const repo = await newRepo();
      const tag = await create(repo, { name: "moving" });
      const times: number[] = [];
      for (const digit of ["a", "b", "a"]) {
        world.harness.skewMs += 1_000;
        times.push(msOf((await create(repo, { name: "moving", digest: digestOf(digit) })).updatedAt));
      }
      const [first = 0, second = 0, third = 0] = times;
      const digits = async (start?: number, end?: number) => {
        const bounds = { ...(start && { start: atMs(start) }), ...(end && { end: atMs(end) }) };
        const { items } = await wire.call(v1.listTagHistory, { parentId: tag.id, ...bounds });
        return items.map(({ digest, updateTimestamp }) => [digest.slice(-1), msOf(updateTimestamp)]);
      };
      const all = [
        ["a", first],
        ["b", second],
        ["a", third],
      ];
      assert.deepEqual(await digits(), all);
      assert.deepEqual(await digits(second), all.slice(1));
      assert.deepEqual(await digits(second + 1), all.slice(2));
      assert.deepEqual(await digits(undefined, third), all.slice(0, 2));
      assert.deepEqual(await digits(second, second), []);
      await world.write(async (tx) => {
        // More than a chunk, at few times: the chunks must neither repeat nor lose any.
        for (let i = 0; i < 1_300; i++) {
          const digest = `sha256:${i.toString(16).padStart(64, "0")}`;
          await tx.table(tagKind).recordMove({ tagUid: tag.id, timeMs: third + 1 + Math.floor(i / 1_100), digest });
        }
      });
      const { items } = await wire.call(v1.listTagHistory, { parentId: tag.id, start: atMs(third + 1) });
      assert.equal(new Set(items.map(({ digest }) => digest)).size, 1_300);
      assert.equal(items.length, 1_300);
    });

    it("are summed up", async () => {
      const repo = await newRepo();
      const summary = (more: object = {}) => wire.call(v1.getRepoTagsSummary, { repoId: repo, ...more });
      const lately = async () => (await wire.call(v1.getUpdateStatus, { repoId: repo })).recentlyUpdated;
      const empty = await summary();
      assert.deepEqual(
        [empty.id, empty.tagCount, empty.latestTag, empty.lastUpdated],
        [repo, 0n, undefined, undefined],
      );
      assert.equal(await lately(), false);
      const order = [
        "1.2",
        "1.2.3",
        "latest-dev",
        "latest",
        "1.2.3-r4",
        "1.2.3_git20260914",
        "1.2.3_git20260914-r4",
        "edge",
      ];
      for (const tag of order) {
        world.harness.skewMs += 10;
        await world.tag(repo, tag, tag === "edge" ? "e" : "a");
      }
      const whole = await summary();
      assert.deepEqual(
        [whole.tagCount, whole.latestTag?.name, whole.latestVersion],
        [8n, "latest", "1.2.3_git20260914-r4"],
      );
      for (const [excluded, count, version] of [
        [{ excludeEpochs: true, excludeDates: true, excludeReferrers: true }, 6n, "1.2.3_git20260914"],
        [{ excludeVcsSnapshots: true }, 6n, "1.2.3-r4"],
        [{ excludeEpochs: true, excludeVcsSnapshots: true }, 5n, "1.2.3"],
      ] as const) {
        const fewer = await summary(excluded);
        assert.deepEqual([fewer.tagCount, fewer.latestTag?.name, fewer.latestVersion], [count, "latest", version]);
      }
      await wire.call(v1.deleteTag, { id: whole.latestTag?.id ?? "" });
      const rest = await summary();
      assert.deepEqual([rest.tagCount, rest.latestTag?.name, rest.latestVersion], [7n, "edge", ""]);
      assert.deepEqual(rest.lastUpdated, rest.latestTag?.updatedAt);
      assert.equal(await lately(), true);
      world.harness.skewMs += 25 * 60 * 60 * 1000;
      const token = await world.harness.token(world.owner.uid);
      assert.equal((await wire.call(v1.getUpdateStatus, { repoId: repo }, token)).recentlyUpdated, false);
      world.harness.skewMs -= 25 * 60 * 60 * 1000;
    });
  });
}

describe("a repo with many tags", () => {
  it("is deleted with all of them", async () => {
    const wire = wireOf(wireNames[0], world.url, world.owner.token);
    await wire.call(v1.deleteRepo, { id: large });
    assert.deepEqual(await world.write((tx) => tx.table(tagKind).digestsOf(large)), []);
    wire.close();
  });
});
