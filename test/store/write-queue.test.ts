// The queue in front of SQLite's one writer, on a real file: each call keeps its guarantees whatever the
// other calls of its batch do.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, type TestContext, test } from "node:test";
import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { ApiError, connectErrorFrom, invalidArgument } from "../../src/kernel/errors.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { OverdueError } from "../../src/store/sqlite/write-queue.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { childUid, groupRow, roleRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

type Kind = (typeof kinds)[number];
const kinds = [
  "succeeds",
  "throws",
  "throws at once",
  "breaks",
  "swallows",
  "late",
  "stalls",
  "waits a tick",
  "reads a file",
] as const;

interface Planned {
  readonly kind: Kind;
  /** How many rows it writes. */
  readonly rows: number;
  /** Whether it is called in another tick of the event loop than the one before it. */
  readonly newTick: boolean;
}

const nextTick = () => new Promise<void>((resolve) => setImmediate(resolve));
/** Moves `performance.now` forward by the given milliseconds. */
function mockTime(t: TestContext): (ms: number) => void {
  const readTime = performance.now.bind(performance);
  let passedMs = 0;
  t.mock.method(performance, "now", () => readTime() + passedMs);
  return (ms) => {
    passedMs += ms;
  };
}

const oneMillisecond = () => new Promise<void>((resolve) => setTimeout(resolve, 1));

describe("the write queue", () => {
  const directory = tempDir();
  const file = join(directory, "arbor.db");
  let store: Store;
  let observer: SqliteDatabase;
  let now = 0;
  let roots = 0;

  before(() => {
    store = openSqlite({ directory, clock: () => now });
    // Sees committed rows only.
    observer = openDatabase(file);
  });
  beforeEach(() => {
    now = 1_000_000;
  });
  after(async () => {
    await store.close();
    assert.deepEqual(inconsistenciesIn(observer), [], "lists and totals match the remaining rows");
    observer.close();
  });

  async function newRoot(): Promise<string> {
    const root = rootUid(0x1000 + roots++);
    await store.write((tx) => tx.table(groupKind).insert(groupRow(root)));
    return root;
  }

  function readCommitted(parent: string): Set<string> {
    return new Set(observer.prepare("SELECT uid FROM groups WHERE parent_uid = ?").pluck().all(parent) as string[]);
  }

  const rowsOf = (root: string, call: number, { rows }: Planned) =>
    Array.from({ length: rows }, (_, i) => childUid(root, call * 16 + i));

  // The unit of a call; it fails between the inserts of its rows.
  const unitOf = (root: string, call: number, planned: Planned) => async (tx: Tx) => {
    const [first, ...others] = rowsOf(root, call, planned);
    if (planned.kind === "throws at once") throw invalidArgument({ field: "call", subject: "", rule: String(call) });
    if (first !== undefined) await tx.table(groupKind).insert(groupRow(first));
    if (planned.kind === "stalls") await oneMillisecond();
    if (planned.kind === "waits a tick") await nextTick();
    if (planned.kind === "reads a file") await readFile(new URL(import.meta.url));
    const orphan = roleRow(childUid(rootUid(1), call), { groupUid: rootUid(1) });
    if (planned.kind === "breaks") await tx.table(roleKind).insert(orphan);
    if (planned.kind === "swallows") await errorOf(async () => tx.table(roleKind).insert(orphan));
    for (const uid of others) await tx.table(groupKind).insert(groupRow(uid));
    if (planned.kind === "throws") throw invalidArgument({ field: "call", subject: "", rule: String(call) });
    return call;
  };

  const mixes = fc.array(
    fc.record<Planned>({
      // Half of them succeed, so that a batch has rows that could be lost.
      kind: fc.oneof(
        { weight: kinds.length, arbitrary: fc.constant<Kind>("succeeds") },
        { weight: kinds.length, arbitrary: fc.constantFrom(...kinds) },
      ),
      rows: fc.integer({ min: 1, max: 4 }),
      newTick: fc.boolean(),
    }),
    { minLength: 1, maxLength: 40 },
  );

  test("property: all rows of a fulfilled call are stored, and no row of a rejected one", async () => {
    await fc.assert(
      fc.asyncProperty(mixes, async (mix) => {
        const root = await newRoot();
        const outcomes: Promise<void>[] = [];
        const maybeOverdue = mix.some(({ kind }) => awaitsMore(kind));
        for (const [call, planned] of mix.entries()) {
          if (planned.newTick) await nextTick();
          const options = planned.kind === "late" ? { deadlineMs: now - 1 } : { deadlineMs: now + 60_000 };
          outcomes.push(
            store.write(unitOf(root, call, planned), options).then(
              (value) => {
                assert.equal(value, call, "a call gets its own result");
                // What a unit awaits may be available within the tick.
                assert.ok(/succeeds|swallows/.test(planned.kind) || awaitsMore(planned.kind), planned.kind);
                const there = readCommitted(root);
                for (const uid of rowsOf(root, call, planned))
                  assert.ok(there.has(uid), "durable when the call resolves");
              },
              (error: unknown) => {
                if (!(error instanceof OverdueError && maybeOverdue)) assertOwnError(planned.kind, call, error);
                const there = readCommitted(root);
                for (const uid of rowsOf(root, call, planned)) assert.ok(!there.has(uid), "no row of it is stored");
              },
            ),
          );
        }
        await Promise.all(outcomes);
        const later = await store.write((tx) => tx.table(groupKind).find(root));
        assert.equal(later?.uid, root, "later calls work");
      }),
      { numRuns: 60 },
    );
  });

  test("a unit that awaits anything else fails its batch with an error, and later calls work", async () => {
    const root = await newRoot();
    let release = () => {};
    const elsewhere = new Promise<void>((resolve) => {
      release = resolve;
    });
    const insert = (i: number) => store.write((tx) => tx.table(groupKind).insert(groupRow(childUid(root, i))));
    const outcomes = await Promise.allSettled([
      insert(1),
      store.write(async (tx) => {
        await tx.table(groupKind).insert(groupRow(childUid(root, 2)));
        await elsewhere;
        await tx.table(groupKind).insert(groupRow(childUid(root, 3)));
      }),
      insert(4),
    ]);
    release();
    // The third had not begun when the second stalled, and runs in a batch of its own.
    assert.deepEqual(
      outcomes.map((outcome) => (outcome.status === "rejected" ? outcome.reason.name : "done")),
      ["OverdueError", "OverdueError", "done"],
    );
    assert.deepEqual(readCommitted(root), new Set([childUid(root, 4)]));
    await insert(5);
    assert.deepEqual(readCommitted(root), new Set([childUid(root, 4), childUid(root, 5)]));
  });

  test("a stalled unit cannot use a later transaction when it continues", async () => {
    const root = await newRoot();
    let lateError: unknown;
    let resume = () => {};
    const stalled = store.write(async (tx) => {
      await new Promise<void>((resolve) => {
        resume = resolve;
      });
      lateError = await errorOf(async () => tx.table(groupKind).insert(groupRow(childUid(root, 1))));
    });
    await assert.rejects(stalled, OverdueError);
    await store.write(async (tx) => {
      await tx.table(groupKind).insert(groupRow(childUid(root, 2)));
      resume();
      await tx.table(groupKind).insert(groupRow(childUid(root, 3)));
    });
    await nextTick();
    assert.match(String(lateError), /a transaction was used after its unit of work had settled/);
    assert.deepEqual(readCommitted(root), new Set([childUid(root, 2), childUid(root, 3)]));
  });

  test("units run in the order of their calls", async () => {
    const order: number[] = [];
    await Promise.all(Array.from({ length: 200 }, (_, i) => store.write(async () => void order.push(i))));
    assert.deepEqual(
      order,
      Array.from({ length: 200 }, (_, i) => i),
    );
  });

  test("a read in the tick in which a write resolves sees the write", async () => {
    const root = await newRoot();
    // Opens the snapshot of this tick before the write is committed.
    await store.read((tx) => tx.table(groupKind).find(root));
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        await store.write((tx) => tx.table(groupKind).insert(groupRow(childUid(root, i))));
        const found = store.read((tx) => tx.table(groupKind).find(childUid(root, i)));
        assert.ok(found instanceof Promise ? await found : found, `row ${i}`);
      }),
    );
  });

  test("another process that locks the database for 300 ms delays writes only", async () => {
    const root = await newRoot();
    observer.exec("BEGIN IMMEDIATE");
    const startMs = performance.now();
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 1);
    setTimeout(() => observer.exec("COMMIT"), 300);
    const uids = [1, 2, 3].map((i) => childUid(root, i));
    const writes = Promise.all(uids.map((uid) => store.write((tx) => tx.table(groupKind).insert(groupRow(uid)))));
    assert.equal((await store.read((tx) => tx.table(groupKind).find(root)))?.uid, root, "reads are not delayed");
    await writes;
    clearInterval(ticking);
    assert.ok(performance.now() - startMs >= 295);
    assert.ok(ticks > 10, `the event loop was not blocked: ${ticks} ticks`);
    assert.deepEqual(readCommitted(root), new Set(uids));
  });

  test("after 5 s another process's lock makes writes UNAVAILABLE; they do not run, and later ones work", async (t) => {
    const passTime = mockTime(t);
    const root = await newRoot();
    observer.exec("BEGIN IMMEDIATE");
    let runs = 0;
    const rejected = Array.from({ length: 3 }, () => store.write(async () => void runs++));
    passTime(5_000);
    // Setting the clock back meanwhile does not extend the wait.
    now -= 86_400_000;
    for (const outcome of await Promise.allSettled(rejected)) {
      assert.ok(outcome.status === "rejected" && outcome.reason instanceof ApiError);
      assert.equal(outcome.reason.code, Code.Unavailable);
      assert.equal(outcome.reason.message, "Unavailable: another process holds the database");
      const [retry] = connectErrorFrom(outcome.reason, "d").findDetails(RetryInfoSchema);
      assert.equal(retry?.retryDelay?.seconds, 1n);
    }
    assert.equal(runs, 0);
    observer.exec("COMMIT");
    await store.write((tx) => tx.table(groupKind).insert(groupRow(childUid(root, 1))));
    assert.deepEqual(readCommitted(root), new Set([childUid(root, 1)]));
  });

  test("a write waits for up to 5 s, and one whose deadline passes meanwhile does not run", async (t) => {
    const passTime = mockTime(t);
    const root = await newRoot();
    observer.exec("BEGIN IMMEDIATE");
    const waits = store.write((tx) => tx.table(groupKind).insert(groupRow(childUid(root, 1))));
    const late = store.write((tx) => tx.table(groupKind).insert(groupRow(childUid(root, 2))), {
      deadlineMs: now + 1_000,
    });
    const answered = errorOf(() => late);
    now += 4_999;
    passTime(4_900);
    for (let i = 0; i < 5; i++) await oneMillisecond();
    observer.exec("COMMIT");
    await waits;
    const error = await answered;
    assert.ok(error instanceof ApiError && error.code === Code.DeadlineExceeded);
    assert.deepEqual(readCommitted(root), new Set([childUid(root, 1)]));
  });

  test("closing runs queued units and rejects later ones", async () => {
    const own = openSqlite({ directory: tempDir() });
    const queued = Array.from({ length: 100 }, (_, i) => own.write((tx) => tx.settings.put(`s${i}`, "v")));
    const closed = own.close();
    await assert.rejects(
      own.write((tx) => tx.settings.put("after", "v")),
      (error) => error instanceof ApiError && error.message === "Unavailable: the service is stopping",
    );
    await Promise.all(queued);
    await closed;
  });
});

function errorOf(work: () => Promise<unknown>): Promise<unknown> {
  return work().then(
    () => undefined,
    (error: unknown) => error,
  );
}

function awaitsMore(kind: Kind): boolean {
  return kind === "stalls" || kind === "waits a tick" || kind === "reads a file";
}

function assertOwnError(kind: Kind, call: number, error: unknown): void {
  assert.ok(error instanceof Error);
  if (kind === "throws" || kind === "throws at once") assert.equal(error.message, `Invalid argument: call: ${call}`);
  else if (kind === "breaks") assert.equal((error as { code?: unknown }).code, "SQLITE_CONSTRAINT_FOREIGNKEY");
  else if (kind === "late") assert.equal(error.message, "Deadline exceeded: the call took longer than allowed");
  else throw new assert.AssertionError({ message: `${kind} was rejected: ${error.stack}` });
}
