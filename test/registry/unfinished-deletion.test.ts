// A deletion that fails after it has deleted a part is in the audit log: otherwise a caller with a short deadline could
// empty a repo without a trace.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { tagKind } from "../../src/store/registry/tags.js";
import { type RegistryWorld, startRegistryWorld } from "./registry-world.js";

const TAGS = 2_000;
const UNFINISHED = "arbor.deletion.unfinished.v1";
const DELETED = "dev.chainguard.api.platform.registry.repo.deleted.v1";

let world: RegistryWorld;
before(async () => {
  world = await startRegistryWorld();
});
after(() => world.stop());

const countTags = async (repo: string) =>
  Number((await world.call("GET", `/tags?uidp.childrenOf=${repo}&pageSize=1`)).json?.totalCount);

const remove = (repo: string, seconds: number) =>
  fetch(`${world.url}/registry/v2beta1/repos/${repo}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${world.owner.token}`, "x-server-timeout": seconds.toFixed(3) },
  });

const typesOf = async (repo: string) => {
  const rows = await world.harness.app.installation.store.read((tx) => tx.audit.listNewest(200));
  return rows
    .filter(({ subjectUid, actorUid }) => subjectUid === repo && actorUid === world.owner.uid)
    .map(({ type }) => type)
    .filter((type) => type === UNFINISHED || type === DELETED);
};

it("a deletion that ends at its deadline is in the audit log, once, if it has deleted anything", async () => {
  const repo = await world.repo({ name: "full" });
  await world.write(async (tx) => {
    for (let n = 0; n < TAGS; n++) {
      const tag = { uid: randomIds.newUid(repo), repoUid: repo, name: `n${n}`, digest: "", family: 0 as const };
      await tx
        .table(tagKind)
        .insert({ ...tag, deprecated: false, bundles: [], createTimeMs: 1_000, updateTimeMs: 1_000 });
    }
  });
  let [unfinished, left, status] = [0, TAGS, 504];
  for (let seconds = 0.01; left > 0 && status === 504; seconds *= 1.5) {
    ({ status } = await remove(repo, seconds));
    const found = status === 504 ? await countTags(repo) : 0;
    if (status === 504 && found < left) unfinished++;
    left = found;
  }
  assert.ok(unfinished > 0, "no deletion ended after its first part");
  if (status === 504) assert.equal((await remove(repo, 30)).status, 200);
  assert.deepEqual(await typesOf(repo), [DELETED, ...Array(unfinished).fill(UNFINISHED)]);
});
