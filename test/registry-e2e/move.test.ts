// `arbor registry move` on a stock registry: one repo that was pushed under the uid of its organisation and under the
// organisation's name.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Content } from "../../src/registry/oci/registry-client.js";
import { repoKind } from "../../src/store/registry/repos.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { tempDir } from "../support/temp-dir.js";
import { startBareRegistry } from "./bare-registry.js";
import { makeImage } from "./images.js";
import { fillRepos, type MoveWorld, startMoveWorld } from "./move-world.js";
import { arbor, type Outcome, registryMissing as skip, startRegistry } from "./registry.js";

const NAME = "acme.example";
const MANY = 24;

function assertSuccess({ status, stdout, stderr }: Outcome): string {
  assert.equal(status, 0, stderr);
  return stdout;
}

/** The counts that a command printed. */
function countsOf(stdout: string): Readonly<Record<string, number>> {
  return Object.fromEntries([...stdout.matchAll(/^(.+): (\d+)$/gm)].map(([, name = "", n]) => [name, Number(n)]));
}

describe("moving a repo that was pushed under both names", { skip }, () => {
  let made: MoveWorld;
  let byUid: string;
  let byName: string;
  /** The content under the uid before the move, and its tags. */
  let content: ReadonlyMap<string, Content>;
  let tags: Readonly<Record<string, string>>;
  /** The digest that `latest` had first under the uid. */
  let untagged: string;
  let bytes: number;

  before(async () => {
    made = await startMoveWorld(NAME);
    byUid = `${made.group}/app`;
    byName = `${NAME}/app`;
    await fillRepos(made, MANY);
    await made.verify();
    for (const [text, tag] of [
      ["latest by name", "latest"],
      ["new", "new"],
    ]) {
      const image = `oci:${makeImage(tempDir(), String(text)).directory}`;
      assertSuccess(await made.push(image, `${byName}:${tag}`));
    }
    tags = await made.tags(byUid);
    content = await made.manifests(byUid);
    const row = await made.world.write((tx) => tx.table(repoKind).findByName(made.group, "app"));
    const known = await made.world.write((tx) => tx.table(tagKind).digestsOf(row?.uid ?? ""));
    untagged = "";
    for (const one of known) if (!content.has(one) && (await made.client.findDigest(byUid, one))) untagged = one;
    assert.notEqual(untagged, "");
    bytes = made.countStoredBytes();
  });
  after(() => made?.stop());

  /** Pulls every tag and digest by skopeo; a build cache is no image. */
  async function pullAll(path: string, more: readonly string[] = []): Promise<void> {
    const indexes = new Set(Object.entries(tags).flatMap(([tag, digest]) => (tag === "cache" ? [digest] : [])));
    const digests = [...content.keys(), untagged].filter((digest) => !indexes.has(digest));
    const names = [...Object.keys(tags), ...more].filter((tag) => tag !== "cache");
    for (const one of [...names.map((tag) => `:${tag}`), ...digests.map((digest) => `@${digest}`)]) {
      assertSuccess(await made.pull(`${path}${one}`));
    }
  }

  /** Syncs until nothing changes, which is at the second time. */
  async function syncTwice(): Promise<void> {
    assertSuccess(await made.run("sync"));
    assert.match(assertSuccess(await made.run("sync")), /^0 changed$/m);
  }

  test("before, both paths are pulled, and only the name is pushed to", async () => {
    await pullAll(byUid);
    assertSuccess(await made.pull(`${byName}:latest`));
    assertSuccess(await made.pull(`${byName}:new`));
    const { status, stderr } = await made.push(`oci:${makeImage(tempDir(), "no").directory}`, `${byUid}:refused`);
    assert.notEqual(status, 0);
    assert.match(stderr, /invalid status code from registry 403 \(Forbidden\)/);
  });

  test("before, a sync has the tags of both paths, and those of the name where both have one", async () => {
    await syncTwice();
    assert.deepEqual(await made.readTags("app"), { ...tags, ...(await made.tags(byName)) });
  });

  test("a move that is killed leaves everything as it was", async () => {
    const lines = await made.kill("move", 3);
    assert.ok(lines >= 3);
    const copied = Object.keys(await made.tags(byName)).length;
    assert.ok(copied < Object.keys(tags).length, `${copied} tags were copied`);
    assertSuccess(await made.pull(`${byUid}:multi`));
    assert.deepEqual(await made.tags(byUid), tags);
  });

  test("the next run copies the rest; nothing is copied twice and no blob is stored twice", async () => {
    const before = await made.tags(byName);
    const missing = Object.keys(tags).filter((tag) => !(tag in before));
    const counts = countsOf(assertSuccess(await made.run("move")));
    assert.equal(counts["organisations moved"], 1);
    assert.equal(counts["repos moved"], 2);
    // The repo `tools` has a tag as well.
    assert.equal(counts["tags copied"], missing.length + 1);
    assert.ok((counts["manifests copied"] ?? 0) <= content.size + 2);
    assert.equal(made.countStoredBytes(), bytes);
    assert.deepEqual(await made.tags(byName), { ...tags, ...before });
    for (const [digest, { mediaType, bytes }] of content) {
      const copy = await made.client.findManifest(byName, digest);
      assert.deepEqual([copy?.mediaType, copy?.bytes.equals(bytes)], [mediaType, true], digest);
    }
  });

  test("afterwards every tag and digest is pulled by the name, and none by the uid", async () => {
    await pullAll(byName, ["new"]);
    assertSuccess(await made.pull(`${NAME}/tools:1`));
    for (const one of [":multi", `@${untagged}`]) {
      const { status, stderr } = await made.pull(`${byUid}${one}`);
      assert.notEqual(status, 0);
      assert.match(stderr, /invalid status code from registry 403 \(Forbidden\)/);
    }
  });

  test("a sync ignores the old path from then on", async () => {
    await syncTwice();
    const digest = await made.client.findDigest(byName, "v1");
    const row = await made.client.findManifest(byName, digest ?? "");
    assert.ok(row);
    // What is deleted under the name does not come back from the uid, neither by a sync nor by another move.
    assert.equal(await made.client.remove(byName, "manifests", digest ?? ""), true);
    assertSuccess(await made.run("sync"));
    assert.equal("v1" in (await made.readTags("app")), false);
    const counts = countsOf(assertSuccess(await made.run("move")));
    assert.deepEqual([counts["organisations moved"], counts["tags copied"], counts["manifests copied"]], [0, 0, 0]);
    await made.client.putManifest(byName, "v1", row);
    assertSuccess(await made.run("sync"));
    assert.equal("v1" in (await made.readTags("app")), true);
  });

  test("--delete-old empties the old path, and nothing else changes", async () => {
    const before = await made.tags(byName);
    // Killed first, in the middle of the deletion.
    assert.ok((await made.kill("move", 5, "--delete-old", "--yes")) >= 5);
    assert.ok(Object.keys(await made.tags(byUid)).length > 0);
    await pullAll(byName, ["new"]);
    const stdout = assertSuccess(await made.run("move", "--delete-old", "--yes"));
    assert.ok((countsOf(stdout)["manifests deleted under uids"] ?? 0) > 0, stdout);
    assert.doesNotMatch(stdout, /left under uids/);
    assert.deepEqual([await made.tags(byUid), await made.tags(`${made.group}/tools`)], [{}, {}]);
    for (const digest of [...content.keys(), untagged]) {
      assert.equal(await made.client.findDigest(byUid, digest), undefined, digest);
    }
    assert.deepEqual(await made.tags(byName), before);
    await pullAll(byName, ["new"]);
    assert.equal(made.countStoredBytes(), bytes);
    assert.match(assertSuccess(await made.run("sync")), /^0 changed$/m);
    assert.deepEqual(await made.readTags("app"), before);
    const again = countsOf(assertSuccess(await made.run("move", "--delete-old", "--yes")));
    assert.equal(again["manifests deleted under uids"], 0);
  });
});

describe("what cannot be moved", { skip }, () => {
  let made: MoveWorld;
  let byUid: string;
  let missing: string;
  const other = "broken.example/app";

  before(async () => {
    made = await startMoveWorld("broken.example");
    byUid = `${made.group}/app`;
    const layout = (text: string, architectures?: readonly string[]) =>
      `oci:${makeImage(tempDir(), text, architectures).directory}`;
    assertSuccess(await made.push(layout("whole"), `${byUid}:whole`));
    const index = layout("broken", ["amd64", "arm64"]);
    assertSuccess(await made.push(index, `${byUid}:broken`, "--all", "--preserve-digests"));
    const manifests = await made.manifests(byUid);
    const { manifests: children = [] } = JSON.parse(
      manifests.get((await made.client.findDigest(byUid, "broken")) ?? "")?.bytes.toString() ?? "",
    ) as { manifests?: { digest: string }[] };
    missing = children[1]?.digest ?? "";
    assert.equal(await made.client.remove(byUid, "manifests", missing), true);
    await made.verify();
  });
  after(() => made?.stop());

  test("a registry that has nothing of the organisation is another one, and nothing is moved", async () => {
    const empty = await startBareRegistry({ directory: tempDir() });
    try {
      assertSuccess(await made.run("sync"));
      const { status, stdout, stderr } = await arbor([
        ...["registry", "move", "--data", made.world.data, "--registry-url", empty.url, "--delete-old", "--yes"],
      ]);
      assert.deepEqual([status, stdout], [6, ""]);
      assert.match(stderr, /the registry has no repo of broken\.example: check --registry-url/);
      assertSuccess(await made.pull(`${byUid}:whole`));
    } finally {
      await empty.stop();
    }
  });

  test("an index without one of its images is named, and the organisation is not moved", async () => {
    const { status, stdout, stderr } = await made.run("move");
    assert.equal(status, 6);
    assert.match(stderr, new RegExp(`${byUid}:broken cannot be copied: the manifest ${missing} is missing`));
    assert.match(stderr, /--skip-broken/);
    assert.deepEqual([countsOf(stdout)["organisations moved"], countsOf(stdout)["tags copied"]], [0, 1]);
    assertSuccess(await made.pull(`${byUid}:whole`));
    assertSuccess(await made.pull(`${other}:whole`));
  });

  test("--skip-broken leaves it behind, and --delete-old deletes what was copied alone", async () => {
    const counts = countsOf(assertSuccess(await made.run("move", "--skip-broken", "--delete-old", "--yes")));
    assert.equal(counts["organisations moved"], 1);
    assert.equal(counts["manifests deleted under uids"], 1);
    // The index and the image that it still has.
    assert.equal(counts["manifests left under uids, because they are not under the name"], 2);
    assert.deepEqual(Object.keys(await made.tags(byUid)), ["broken"]);
    assert.deepEqual(Object.keys(await made.tags(other)), ["whole"]);
    assertSuccess(await made.pull(`${other}:whole`));
  });

  test("a registry that does not delete is reported, after everything is copied", async () => {
    const storage = { filesystem: { rootdirectory: made.registry.storage } };
    const reading = await startRegistry({ data: made.world.data, sections: { storage } });
    try {
      const args = [
        "registry",
        "move",
        "--data",
        made.world.data,
        "--registry-url",
        reading.url,
        "--delete-old",
        "--yes",
      ];
      await made.client.putManifest(byUid, "whole", await contentOf(other, "whole"));
      const { status, stderr } = await arbor(args);
      assert.equal(status, 6);
      assert.match(stderr, /the registry does not allow DELETE .*: storage\.delete\.enabled/);
    } finally {
      await reading.stop();
    }
  });

  test("a sync with another registry removes nothing, unless more than half of the tags may go", async () => {
    const empty = await startBareRegistry({ directory: tempDir() });
    try {
      assertSuccess(await made.run("sync"));
      const known = await made.readTags("app");
      assert.ok(Object.keys(known).length > 0);
      const args = ["registry", "sync", "--data", made.world.data, "--registry-url", empty.url];
      for (const _ of [1, 2]) {
        const { status, stdout, stderr } = await arbor(args);
        assert.deepEqual([status, stdout], [6, ""]);
        assert.match(stderr, /the registry lacks (\d) of \1 tags: .*--allow-mass-removal/);
        assert.deepEqual(await made.readTags("app"), known);
      }
      // The right registry is synced from the beginning.
      assertSuccess(await made.run("sync"));
      const allowed = await arbor([...args, "--allow-mass-removal"]);
      assert.equal(countsOf(assertSuccess(allowed))["tags removed"], Object.keys(known).length);
      assert.deepEqual(await made.readTags("app"), {});
    } finally {
      await empty.stop();
    }
  });

  async function contentOf(path: string, tag: string): Promise<Content> {
    const content = await made.client.findManifest(path, (await made.client.findDigest(path, tag)) ?? "");
    return content ?? assert.fail(`${path}:${tag} is missing`);
  }
});
