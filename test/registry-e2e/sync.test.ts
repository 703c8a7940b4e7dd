// Syncing a registry that was there before, whatever happens meanwhile.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { createRegistryClient } from "../../src/registry/oci/registry-client.js";
import { syncRegistry } from "../../src/registry/oci/sync.js";
import { applyTagPush } from "../../src/registry/oci/tag-events.js";
import { ensureRepo } from "../../src/registry/repos/repo.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";
import { startBareRegistry } from "./bare-registry.js";
import { registryMissing as skip } from "./registry.js";
import { writeStorage } from "./storage.js";
import { runSyncCampaign } from "./sync-campaign.js";

const ROOT = rootUid(1);
const store = openSqlite({ directory: tempDir(), clock: Date.now, exclusive: true });
after(() => store.close());

test("a sync that is killed goes on where it was, and every tag is there once", { skip }, async () => {
  const lines: string[] = [];
  const { problems } = await runSyncCampaign({ tags: 1_600, repos: 2, kills: 1, say: (line) => lines.push(line) });
  assert.deepEqual(problems, []);
  assert.match(lines.join("\n"), /^resumed after (?:500|800|1300) tags$/m);
});

test("a push during a sync stays, and tags that were deleted before are removed", { skip }, async () => {
  const directory = tempDir();
  const stored = writeStorage(directory, "acme", 3, 1);
  const registry = await startBareRegistry({ directory });
  try {
    const client = createRegistryClient({ url: registry.url, token: () => "none is needed" });
    const digest = `sha256:${"d".repeat(64)}`;
    const beforeMs = Date.now() - 60_000;
    const repo = await store.write(async (tx) => {
      await tx.table(groupKind).insert(groupRow(ROOT, { name: "acme", verified: true }));
      await tx.registry.putName({ name: "acme", groupUid: ROOT, uidPath: "pulls" });
      await tx.audit.append({
        rootUid: ROOT,
        timeMs: beforeMs,
        type: "test",
        method: "test",
        subjectUid: ROOT,
        actorUid: "",
        tokenId: "",
        requestId: "",
        remoteAddress: "",
      });
      const repo = await ensureRepo(tx, ROOT, "app0", { ids: randomIds, nowMs: beforeMs });
      for (const name of ["gone", "v0"])
        await applyTagPush(tx, { repoUid: repo.uid, name, digest, timeMs: beforeMs }, randomIds);
      return repo;
    });
    const tagNow = (name: string) =>
      store.write((tx) => applyTagPush(tx, { repoUid: repo.uid, name, digest, timeMs: Date.now() + 1 }, randomIds));
    const state = await syncRegistry({
      store,
      registry: {
        ...client,
        async listTags(path) {
          const tags = await client.listTags(path);
          await tagNow("pushed-meanwhile");
          return tags;
        },
      },
      clock: Date.now,
      ids: randomIds,
      allowMassRemoval: false,
      onProgress() {},
    });
    const query = { visible: [repo.uid], filter: {}, order: { field: "name", descending: false }, skip: 0, limit: 10 };
    const { rows } = await store.read((tx) => tx.table(tagKind).listAll(query));
    const found = new Map(rows.map((row) => [row.name, row.digest]));
    assert.deepEqual(found, new Map([["pushed-meanwhile", digest], ...(stored.get("acme/app0") ?? [])]));
    const { tags, added, removed, unknown } = state;
    assert.deepEqual({ tags, added, removed, unknown }, { tags: 3, added: 3, removed: 1, unknown: 0 });
    assert.equal(await store.read((tx) => tx.settings.find("registry-sync")), "");
  } finally {
    await registry.stop();
  }
});
