// When identities were last seen: written down some seconds later, for many at
// once, and never back.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createLastSeen } from "../../../src/issuer/sts/last-seen.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { openSqlite } from "../../../src/store/open-sqlite.js";
import type { Store } from "../../../src/store/port.js";
import { openDatabase } from "../../../src/store/sqlite-driver.js";
import { groupRow, identityRow } from "../../support/rows.js";
import { tempDir } from "../../support/temp-dir.js";
import { ask } from "./ask.js";
import { type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";

describe("exchanges", () => {
  let world: ExchangeWorld;
  before(async () => {
    world = await startExchangeWorld();
  });
  after(() => world.stop());

  const seenAt = async (uid: string) => {
    const { json } = await ask(world.url, `/iam/v2beta1/identities/${uid}`, { bearer: world.owner.token });
    return Date.parse(String(json.lastSeenTime));
  };

  it("write nothing by themselves, and move the time soon", { timeout: 60_000 }, async () => {
    const identity = await world.workload("seen");
    const unused = await world.workload("not seen");
    const bearer = world.token({ sub: "seen" });
    // Moves when another connection commits.
    const db = openDatabase(join(world.data, "arbor.db"), { readonly: true });
    const version = () => Number(db.pragma("data_version", { simple: true }));
    let [commits, last] = [0, version()];
    const beganMs = Date.now();
    for (let i = 0; i < 300; i++) {
      assert.equal((await world.exchange({ identity }, bearer)).status, 200);
      const now = version();
      if (now !== last) commits++;
      last = now;
    }
    const tookMs = Date.now() - beganMs;
    assert.ok(commits <= 2 + tookMs / 2_500, `${commits} commits in ${tookMs} ms`);
    while ((await seenAt(identity)) < beganMs) {
      assert.ok(Date.now() - beganMs < tookMs + 20_000, "it moves within seconds");
      await sleep(200);
    }
    assert.equal((await seenAt(identity)) <= Date.now(), true);
    assert.equal(await seenAt(unused), 1_000, "that of others stays");
    db.close();
  });

  it("that are refused move nothing", async () => {
    const identity = await world.workload("refused");
    await world.exchange({ identity }, world.token({ sub: "x" }));
    await world.exchange({ identity, aud: "x" }, world.token({ sub: "refused" }));
    await world.harness.app.stop();
    const db = openDatabase(join(world.data, "arbor.db"), { readonly: true });
    const row = db.prepare("SELECT last_seen_time_ms AS seen FROM identities WHERE uid = ?").get(identity);
    assert.deepEqual(row, { seen: 1_000 });
    db.close();
  });
});

it("a service that stops writes down what it knows", async () => {
  const world = await startExchangeWorld();
  const identity = await world.workload("late");
  const beganMs = Date.now();
  await world.exchanged({ identity }, world.token({ sub: "late" }));
  await world.stop();
  const db = openDatabase(join(world.data, "arbor.db"), { readonly: true });
  const { seen } = db.prepare("SELECT last_seen_time_ms AS seen FROM identities WHERE uid = ?").get(identity) as {
    seen: number;
  };
  assert.ok(seen >= beganMs, `seen at ${seen}`);
  db.close();
});

describe("what is known", () => {
  let store: Store;
  const group = randomIds.newUid();
  let writes = 0;
  let failing = 0;
  /** The store, which counts and can be made to fail. */
  const watched = (): Store => ({
    ...store,
    async write(unit, options) {
      if (failing-- > 0) throw new Error("the disk is full");
      writes++;
      return store.write(unit, options);
    },
  });
  before(async () => {
    store = openSqlite({ directory: tempDir(), clock: () => 0, exclusive: false });
    await store.write((tx) => tx.groups.insert(groupRow(group)));
  });
  after(() => store.close());

  const made = async (count: number) => {
    const uids = Array.from({ length: count }, () => randomIds.newUid(group));
    await store.write(async (tx) => {
      for (const uid of uids) await tx.identities.insert(identityRow(uid));
    });
    return uids;
  };
  const seen = async (uid = "") => (await store.read((tx) => tx.identities.get(uid)))?.lastSeenTimeMs;

  it("never goes back, neither in memory nor in the store", async () => {
    const [uid = ""] = await made(1);
    const lastSeen = createLastSeen(store);
    for (const timeMs of [5_000, 9_000, 7_000]) lastSeen.touch(uid, timeMs);
    await lastSeen.flush();
    assert.equal(await seen(uid), 9_000);
    lastSeen.touch(uid, 8_000);
    await lastSeen.flush();
    assert.equal(await seen(uid), 9_000);
  });

  it("is written for many in one transaction, and once", async () => {
    const uids = await made(450);
    const lastSeen = createLastSeen(watched());
    for (let time = 0; time < 3; time++) for (const uid of uids) lastSeen.touch(uid, 4_000 + time);
    lastSeen.touch(randomIds.newUid(group), 4_000);
    writes = 0;
    await lastSeen.flush();
    await lastSeen.flush();
    assert.equal(writes, 3);
    assert.deepEqual([await seen(uids[0]), await seen(uids[449])], [4_002, 4_002]);
  });

  it("is not lost when it cannot be written", async () => {
    const uids = await made(250);
    const lastSeen = createLastSeen(watched());
    for (const uid of uids) lastSeen.touch(uid, 6_000);
    failing = 1;
    await assert.rejects(lastSeen.flush(), /disk is full/);
    lastSeen.touch(uids[0] ?? "", 6_500);
    await lastSeen.flush();
    assert.deepEqual([await seen(uids[0]), await seen(uids[249])], [6_500, 6_000]);
  });
});
