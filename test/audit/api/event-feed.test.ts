// The feed that all streams of events share.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createEventIds } from "../../../src/audit/audit-v1.js";
import { createEventFeed, createEventStreams, type EventReader } from "../../../src/audit/event-feed.js";
import type { AuditEventRow, AuditEvents } from "../../../src/store/audit/events.js";
import type { Store } from "../../../src/store/store.js";
import type { Tx } from "../../../src/store/transaction.js";
import { rootUid } from "../../support/rows.js";
import { auditRow, buildStoredRow, openLog } from "../log-kit.js";

const [first, second] = [rootUid(0xe1), rootUid(0xe2)];
const never = new AbortController().signal;
const all = () => true;

/** A table of rows that appear in any order, and how often it was read. */
function rowTable(lateCommitMs: number) {
  const rows: AuditEventRow[] = [];
  let reads = 0;
  const auditEvents: Pick<AuditEvents, "listAfter" | "findByIds" | "lastId"> = {
    listAfter: async (id, limit) => rows.filter((row) => row.id > id).slice(0, limit),
    findByIds: async (ids) => rows.filter(({ id }) => ids.includes(id)),
    lastId: async () => rows.at(-1)?.id ?? 0,
  };
  const read = async (unit: (tx: Tx) => unknown) => {
    reads++;
    return unit({ auditEvents } as unknown as Tx);
  };
  return {
    store: { read, lateCommitMs } as unknown as Store,
    reads: () => reads,
    commit(id: number, root = first) {
      rows.push({ ...buildStoredRow(id, root), seq: null });
      rows.sort((a, b) => a.id - b.id);
    },
  };
}

async function idsOf(reader: EventReader, count: number): Promise<number[]> {
  const ids: number[] = [];
  for (let i = 0; i < 100 && ids.length < count; i++) {
    ids.push(...(await reader.next(20, never)).map(({ id }) => id));
  }
  return ids;
}

describe("the feed of audit events", () => {
  it("reads the log once for all readers, and not at all without any", async () => {
    const table = rowTable(0);
    const feed = createEventFeed({ store: table.store, onProblem: assert.fail, pollMs: 20 });
    const readers = Array.from({ length: 1_000 }, (_, i) => feed.follow(i % 2 === 0 ? first : second, all));
    await sleep(30);
    table.commit(1);
    table.commit(2, second);
    for (const [i, reader] of readers.entries()) assert.deepEqual(await idsOf(reader, 1), [1 + (i % 2)]);
    // Readers that each read for themselves would have read a thousand times.
    assert.ok(table.reads() < 200, `${table.reads()} reads`);
    for (const reader of readers) reader.close();
    await sleep(60);
    const before = table.reads();
    await sleep(100);
    assert.equal(table.reads(), before);
  });

  it("finds rows that are committed after rows with higher ids", async () => {
    const table = rowTable(60_000);
    for (const id of [1, 2, 4]) table.commit(id);
    const feed = createEventFeed({ store: table.store, onProblem: assert.fail, pollMs: 5 });
    const reader = feed.follow(first, all);
    await sleep(30);
    table.commit(7);
    assert.deepEqual(await idsOf(reader, 1), [7]);
    for (const id of [5, 3, 6]) table.commit(id);
    assert.deepEqual((await idsOf(reader, 3)).sort(), [3, 5, 6]);
    reader.close();
  });

  it("ends the stream of a reader that is too slow, and of no other", async () => {
    const table = rowTable(0);
    const feed = createEventFeed({ store: table.store, onProblem: assert.fail, pollMs: 5 });
    const [slow, other] = [feed.follow(first, all), feed.follow(second, all)];
    await sleep(30);
    for (let id = 1; id <= 1_001; id++) table.commit(id);
    table.commit(2_000, second);
    assert.deepEqual(await idsOf(other, 1), [2_000]);
    await assert.rejects(slow.next(10, never), /Resource exhausted: events occur faster/);
    slow.close();
    other.close();
  });

  it("brings a burst of 5,000 rows to a reader that keeps up", async () => {
    const table = rowTable(0);
    const feed = createEventFeed({ store: table.store, onProblem: assert.fail, pollMs: 5 });
    const reader = feed.follow(first, all);
    await reader.begin(never);
    const burst = Array.from({ length: 5_000 }, (_, i) => i + 1);
    for (const id of burst) table.commit(id);
    assert.deepEqual(await idsOf(reader, burst.length), burst);
    reader.close();
  });

  it("goes on after a read that failed", async () => {
    const table = rowTable(0);
    const problems: string[] = [];
    let broken = false;
    const read: Store["read"] = (unit) => {
      if (broken) throw new Error("no database");
      return table.store.read(unit);
    };
    const store = { ...table.store, read };
    const feed = createEventFeed({ store, onProblem: (problem) => void problems.push(problem), pollMs: 5 });
    const reader = feed.follow(first, all);
    await sleep(30);
    broken = true;
    table.commit(1);
    await sleep(30);
    broken = false;
    assert.deepEqual(await idsOf(reader, 1), [1]);
    assert.ok(problems.length > 0);
    reader.close();
  });

  it("follows a real log from now on", async () => {
    const log = await openLog();
    await log.append(auditRow(first));
    const feed = createEventFeed({ store: log.store, onProblem: assert.fail, pollMs: 5 });
    const reader = feed.follow(first, ({ type }) => type === "wanted");
    await reader.begin(never);
    await log.append(auditRow(first), auditRow(second, { type: "wanted" }), auditRow(first, { type: "wanted" }));
    assert.deepEqual(await idsOf(reader, 1), [4]);
    reader.close();
    await log.close();
  });
});

describe("the number of streams", () => {
  it("has a limit for all and for each identity", () => {
    const streams = createEventStreams(3, { identity: 2, organisation: 3, founder: 3 });
    const take = (identity: string) => streams.take({ identity, organisation: "o" });
    const release = take("a");
    take("a");
    assert.throws(() => take("a"), /this identity has 2 streams/);
    take("b");
    assert.throws(() => take("c"), /there are 3 streams/);
    release();
    release();
    take("c");
    assert.throws(() => take("d"), /there are 3 streams/);
  });

  it("has a limit for each organisation: 22 identities of one leave four fifths to others", () => {
    const streams = createEventStreams();
    let taken = 0;
    for (let i = 0; i < 22 * 50; i++) {
      try {
        streams.take({ identity: `tenant/${i % 22}`, organisation: "tenant" });
        taken++;
      } catch (error) {
        assert.match(String(error), /this organisation has 200 streams of audit events/);
      }
    }
    assert.equal(taken, 200);
    for (let i = 0; i < 50; i++) streams.take({ identity: "other/1", organisation: "other" });
  });
});

describe("the number of streams of organisations that one person created", () => {
  it("has a limit as well: five of them leave four fifths to others", () => {
    const streams = createEventStreams();
    let taken = 0;
    for (let i = 0; i < 1_100; i++) {
      const organisation = `root ${i % 5}`;
      try {
        streams.take({ identity: `${organisation}/${i % 25}`, organisation, founder: "mallory" });
        taken++;
      } catch (error) {
        assert.match(String(error), /this founder has 200 streams of audit events/);
      }
    }
    assert.equal(taken, 200);
    for (let i = 0; i < 50; i++) streams.take({ identity: "other/1", organisation: "other", founder: "alice" });
    for (let i = 0; i < 50; i++) streams.take({ identity: "third/1", organisation: "third" });
  });
});

describe("ids of events", () => {
  it("are read by the installation that wrote them, and by no other", () => {
    const [ids, others] = [createEventIds(Buffer.alloc(16, 1)), createEventIds(Buffer.alloc(16, 2))];
    for (const id of [1, 2, 1_000_000, Number.MAX_SAFE_INTEGER]) {
      assert.equal(ids.parse(ids.format(id)), id);
      assert.equal(others.parse(ids.format(id)), undefined);
    }
    for (const text of ["", "1", "0".repeat(32), "z".repeat(32), `${ids.format(1)}0`]) {
      assert.equal(ids.parse(text), undefined);
    }
  });
});
