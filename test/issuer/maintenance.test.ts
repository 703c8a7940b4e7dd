// Expired logins are deleted a few rows at a time, so that no other call waits for it, and all of them go.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it, test } from "node:test";
import { type Installation, openInstallation } from "../../src/app/installation.js";
import { resolveSettings } from "../../src/config/config.js";
import { createExpiredRowSweep, createLastSeen, deleteExpired } from "../../src/issuer/maintenance.js";
import { randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";
import { newDataDir } from "../support/data-dir.js";
import { groupRow, identityRow } from "../support/rows.js";
import { chooseScale } from "../support/scale.js";
import { waitUntil } from "../support/wait-until.js";
import { ask } from "./sts/ask.js";
import { type ExchangeWorld, startExchangeWorld } from "./sts/exchange-world.js";

/** As large as rows of logins could once be; smaller ones are faster. */
const ROW_BYTES = 48 * 1024;
const ROWS = chooseScale(3_000, 800);
const MAX_STATEMENT_MS = 20;
/** Far more than the commits that may be seen meanwhile. */
const EXCHANGES = chooseScale(300, 100);

let installation: Installation;
before(async () => {
  installation = await openInstallation({
    mode: "create",
    settings: resolveSettings({ flags: { data: newDataDir(), tokenAlgorithm: "ES256" }, env: {} }),
  });
});
after(() => installation.close());

async function insertTickets(store: Store, from: number, count: number, expireTimeMs: number): Promise<void> {
  const sealed = "x".repeat(ROW_BYTES);
  for (let done = 0; done < count; done += 50) {
    await store.write(async (tx) => {
      for (let i = done; i < Math.min(done + 50, count); i++) {
        const hash = (from + i).toString(16).padStart(64, "0");
        await tx.tickets.put({ hash, kind: "device", data: { sealed }, expireTimeMs });
      }
    });
  }
}

/**
 * The same store, which notes how long each statement of a sweep takes: in time of the processor, since on a machine
 * with much to do a statement also waits for its turn.
 */
function measureStore(store: Store, times: number[]): Store {
  const measureTx = (tx: Tx): Tx =>
    new Proxy(tx, {
      get(target, name) {
        if (name !== "tickets") return Reflect.get(target, name) as unknown;
        const { tickets } = target;
        return {
          sweep(timeMs: number, limit: number) {
            const start = process.cpuUsage();
            const swept = tickets.sweep(timeMs, limit);
            const { user, system } = process.cpuUsage(start);
            times.push((user + system) / 1_000);
            return swept;
          },
        };
      },
    });
  return { ...store, write: (work) => store.write((tx) => work(measureTx(tx))) };
}

test(`deleting ${ROWS} expired logins of ${ROW_BYTES} bytes blocks other calls only briefly`, async (t) => {
  const { store } = installation;
  await insertTickets(store, 0, ROWS, 1_000);
  await insertTickets(store, ROWS, 1, 3_000);
  const times: number[] = [];
  const timed = measureStore(store, times);
  await deleteExpired(timed, 2_000, () => false);
  const left = await store.write(async (tx) => tx.tickets.sweep(2_000, 10));
  assert.equal(left, 0, "none is left");
  const kept = await store.read((tx) => tx.tickets.find("device", ROWS.toString(16).padStart(64, "0")));
  assert.ok(kept, "what has not expired stays");
  const slowest = Math.max(...times);
  t.diagnostic(`${times.length} statements, the slowest ${slowest.toFixed(1)} ms`);
  assert.ok(times.length >= ROWS / 100);
  // Once the runtime may do something else in between.
  const sorted = [...times].sort((a, b) => b - a);
  assert.ok((sorted[1] ?? 0) <= MAX_STATEMENT_MS, `statements took ${sorted.slice(0, 5).join(", ")} ms`);

  await insertTickets(store, 0, ROWS, 1_000);
  times.length = 0;
  await timed.write(async (tx) => tx.tickets.sweep(2_000, ROWS));
  t.diagnostic(`the control, one statement for all: ${times[0]?.toFixed(1)} ms`);
  assert.ok((times[0] ?? 0) > MAX_STATEMENT_MS, "one statement for all of them takes longer than it may");
});

test("a sweep ends when the service stops", async () => {
  const { store } = installation;
  await insertTickets(store, 0, 250, 1_000);
  let checks = 0;
  await deleteExpired(store, 2_000, () => ++checks > 1);
  assert.equal(await store.write(async (tx) => tx.tickets.sweep(2_000, 500)), 200);
});

test("a sweep at a node whose clock is ahead deletes only what has expired by the clock of the database", async () => {
  const { store } = installation;
  const nowMs = Date.now();
  const rows = { expired: nowMs - 1_000, "not expired": nowMs + 600_000 };
  await store.write(async (tx) => {
    for (const [tokenId, expireTimeMs] of Object.entries(rows))
      await tx.revokedTokens.insert({ identityUid: "a".repeat(40), tokenId, expireTimeMs });
  });
  const isKept = () =>
    store.read((tx) => Promise.all(Object.keys(rows).map((id) => tx.revokedTokens.isRevoked("a".repeat(40), id))));
  const run = { fence: 1, holder: "test", signal: new AbortController().signal, write: store.write.bind(store) };
  await createExpiredRowSweep({ store, clock: () => Date.now() + 3_600_000 }).run(run);
  assert.deepEqual(await isKept(), [false, true]);
  // The control: that clock alone would delete the other one as well.
  await deleteExpired(store, Date.now() + 3_600_000, () => false);
  assert.deepEqual(await isKept(), [false, false]);
});

// The times when identities were last seen: written some seconds later, for many at once, and never set back.

describe("exchanges", () => {
  let world: ExchangeWorld;
  before(async () => {
    world = await startExchangeWorld();
  });
  after(() => world.stop());

  const readLastSeen = async (uid: string) => {
    const { json } = await ask(world.url, `/iam/v2beta1/identities/${uid}`, { bearer: world.owner.token });
    return Date.parse(String(json.lastSeenTime));
  };

  it("write nothing by themselves, and update the time soon", async () => {
    const identity = await world.workload("seen");
    const unused = await world.workload("not seen");
    const bearer = world.token({ sub: "seen" });
    // Changes when another connection commits.
    const db = openDatabase(join(world.data, "arbor.db"), { readonly: true });
    const version = () => Number(db.pragma("data_version", { simple: true }));
    let [commits, last] = [0, version()];
    const beganMs = Date.now();
    for (let i = 0; i < EXCHANGES; i++) {
      assert.equal((await world.exchange({ identity }, bearer)).status, 200);
      const now = version();
      if (now !== last) commits++;
      last = now;
    }
    const tookMs = Date.now() - beganMs;
    assert.ok(commits <= 2 + tookMs / 2_500, `${commits} commits in ${tookMs} ms`);
    await waitUntil(async () => (await readLastSeen(identity)) >= beganMs);
    assert.equal((await readLastSeen(identity)) <= Date.now(), true);
    assert.equal(await readLastSeen(unused), 1_000, "that of others stays");
    db.close();
  });

  it("that are rejected do not update the time", async () => {
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
  await world.exchangeToken({ identity }, world.token({ sub: "late" }));
  await world.stop();
  const db = openDatabase(join(world.data, "arbor.db"), { readonly: true });
  const { lastSeenMs } = db
    .prepare("SELECT last_seen_time_ms AS lastSeenMs FROM identities WHERE uid = ?")
    .get(identity) as {
    lastSeenMs: number;
  };
  assert.ok(lastSeenMs >= beganMs, `seen at ${lastSeenMs}`);
  db.close();
});

describe("what is known", () => {
  let store: Store;
  const group = randomIds.newUid();
  let writes = 0;
  let failing = 0;
  /** The store, which counts and can be made to fail. */
  const watchStore = (): Store => ({
    ...store,
    async write(unit, options) {
      if (failing-- > 0) throw new Error("the disk is full");
      writes++;
      return store.write(unit, options);
    },
  });
  before(async () => {
    store = openSqlite({ directory: newDataDir(), clock: () => 0, exclusive: false });
    await store.write((tx) => tx.table(groupKind).insert(groupRow(group)));
  });
  after(() => store.close());

  const createIdentities = async (count: number) => {
    const uids = Array.from({ length: count }, () => randomIds.newUid(group));
    await store.write(async (tx) => {
      for (const uid of uids) await tx.table(identityKind).insert(identityRow(uid));
    });
    return uids;
  };
  const lastSeenMs = async (uid = "") => (await store.read((tx) => tx.table(identityKind).find(uid)))?.lastSeenTimeMs;

  it("never goes back, neither in memory nor in the store", async () => {
    const [uid = ""] = await createIdentities(1);
    const lastSeen = createLastSeen(store);
    for (const timeMs of [5_000, 9_000, 7_000]) lastSeen.touch(uid, timeMs);
    await lastSeen.flush();
    assert.equal(await lastSeenMs(uid), 9_000);
    lastSeen.touch(uid, 8_000);
    await lastSeen.flush();
    assert.equal(await lastSeenMs(uid), 9_000);
  });

  it("is written for many in one transaction, and once", async () => {
    const uids = await createIdentities(450);
    const lastSeen = createLastSeen(watchStore());
    for (let time = 0; time < 3; time++) for (const uid of uids) lastSeen.touch(uid, 4_000 + time);
    lastSeen.touch(randomIds.newUid(group), 4_000);
    writes = 0;
    await lastSeen.flush();
    await lastSeen.flush();
    assert.equal(writes, 3);
    assert.deepEqual([await lastSeenMs(uids[0]), await lastSeenMs(uids[449])], [4_002, 4_002]);
  });

  it("is not lost when it cannot be written", async () => {
    const uids = await createIdentities(250);
    const lastSeen = createLastSeen(watchStore());
    for (const uid of uids) lastSeen.touch(uid, 6_000);
    failing = 1;
    await assert.rejects(lastSeen.flush(), /disk is full/);
    lastSeen.touch(uids[0] ?? "", 6_500);
    await lastSeen.flush();
    assert.deepEqual([await lastSeenMs(uids[0]), await lastSeenMs(uids[249])], [6_500, 6_000]);
  });
});
