// What background jobs do on nodes that share a database; runs on SQLite and on PostgreSQL.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createJobs, type Job, type JobRun, type JobsDeps } from "../../src/jobs/jobs.js";
import { LeaseLostError, readJob, takeLease } from "../../src/jobs/lease.js";
import type { Store } from "../../src/store/store.js";
import type { JobRow } from "../../src/store/tables/tables.js";
import type { Tx } from "../../src/store/transaction.js";
import { waitUntil } from "../support/wait-until.js";

/** Long, so that no lease ends or is renewed on a busy machine while a test looks at it. */
const LEASE_MS = 60_000;
const SHORT_LEASE_MS = 300;
const HOUR_MS = 3_600_000;

/** A job that is due at any time and counts its runs in the store. */
export function counter(values: Partial<Job> = {}): Job {
  return {
    ...{ name: "counter", problem: "nothing could be counted", intervalMs: 1 },
    run: ({ write }) => write(count),
    ...values,
  };
}

/** Adds one to the number that is stored. */
export async function count(tx: Tx): Promise<number> {
  const next = Number((await tx.settings.find("count")) ?? 0) + 1;
  await tx.settings.put("count", String(next));
  return next;
}

/** Creates a node that runs these jobs. */
export function createNode(store: Store, holder: string, job: Job, deps: Partial<JobsDeps> = {}) {
  const problems: string[] = [];
  const onProblem = (problem: string, error: unknown) => void problems.push(`${problem}: ${error}`);
  const jobs = createJobs({ store, holder, onProblem, leaseMs: LEASE_MS, ...deps });
  jobs.add(job);
  return { ...jobs, problems, runNow: () => jobs.runNow(job.name) };
}

/** The stored row of a job. */
export async function rowOf(store: Store, name = "counter"): Promise<JobRow> {
  return { ...((await store.read((tx) => tx.jobs.find(name))) ?? assert.fail("the job has no row")) };
}

/**
 * Registers the tests.
 *
 * @param prepare creates an empty database; the function that it resolves to opens it, once per node
 */
export function jobsSuite(prepare: () => Promise<() => Promise<Store> | Store>): void {
  /** Runs `work` with the stores of two nodes. */
  async function onTwoNodes(work: (one: Store, two: Store) => Promise<void>): Promise<void> {
    const open = await prepare();
    const [one, two] = [await open(), await open()];
    try {
      await work(one, two);
    } finally {
      await Promise.all([one.close(), two.close()]);
    }
  }

  describe("background jobs", () => {
    test("rows are read as they were written, in the order of names", () =>
      onTwoNodes(async (one, two) => {
        const row = (name: string, values: Partial<JobRow> = {}): JobRow => ({
          ...{ name, holder: "node", fence: 2 ** 40, expireTimeMs: 4_102_444_800_000, failures: 3, error: "ü" },
          ...{ startTimeMs: 1, durationMs: 0, changes: 7, nextTimeMs: 2, errorTimeMs: 3, ...values },
        });
        const empty = { startTimeMs: null, durationMs: null, changes: null, error: null, errorTimeMs: null };
        const rows = [row("a", empty), row("b"), row("c", { nextTimeMs: null })];
        await one.write(async (tx) => {
          for (const name of ["c", "a", "b"]) await tx.jobs.put(row(name));
          for (const each of rows) await tx.jobs.put(each);
        });
        assert.deepEqual(
          (await two.read((tx) => tx.jobs.list())).map((each) => ({ ...each })),
          rows,
        );
        assert.equal(await two.read((tx) => tx.jobs.find("d")), undefined);
      }));

    test("one node runs a job while its lease lasts, and another when it stops or is not heard of", () =>
      onTwoNodes(async (first, second) => {
        const [one, two] = [createNode(first, "one", counter()), createNode(second, "two", counter())];
        assert.deepEqual([await one.runNow(), await two.runNow(), await one.runNow()], [1, 0, 2]);
        assert.equal((await rowOf(first)).fence, 1, "one node keeps its number");
        await one.stop();
        assert.deepEqual([await two.runNow(), await one.runNow()], [3, 0]);
        assert.equal((await rowOf(first)).fence, 2);
        await expire(first);
        assert.deepEqual([await one.runNow(), await two.runNow()], [4, 0]);
        const { fence, holder } = await rowOf(first);
        assert.deepEqual({ fence, holder }, { fence: 3, holder: "one" });
      }));

    test("two nodes that take a lease at once do not both get it", () =>
      onTwoNodes(async (one, two) => {
        for (let round = 0; round < 10; round++) {
          const take = async (store: Store, holder: string) => {
            const deps = { store, name: `job ${round}`, holder, leaseMs: 60_000 };
            return takeLease(deps, await store.read((tx) => readJob(tx, deps.name)));
          };
          const taken = await Promise.all([take(one, "one"), take(two, "two"), take(one, "three")]);
          assert.equal(taken.filter((lease) => lease !== undefined).length, 1, `round ${round}`);
        }
      }));

    test("a node that runs on after another took over writes nothing more; without the check it would", () =>
      onTwoNodes(async (first, second) => {
        let [written, unchecked] = [0, 0];
        const late = counter({
          async run({ write, fence }) {
            written = await write(count);
            // As after a pause of the process: nothing renews the lease meanwhile.
            await expire(first);
            assert.equal(await two.runNow(), 2);
            assert.equal(fence, 1);
            await assert.rejects(write(count), LeaseLostError);
            unchecked = await first.write(count);
            return write(count);
          },
        });
        const [one, two] = [createNode(first, "one", late), createNode(second, "two", counter())];
        assert.equal(await one.runNow(), 0);
        assert.deepEqual({ written, unchecked }, { written: 1, unchecked: 3 });
        assert.deepEqual(one.problems, [], "which is no failure of the job");
        const { holder, fence } = await rowOf(first);
        assert.deepEqual({ holder, fence }, { holder: "two", fence: 2 });
      }));

    test("a run renews its lease while it writes nothing", () =>
      onTwoNodes(async (first, second) => {
        const ends = new Set<number>();
        const run = async () => {
          for (let i = 0; ends.size < 3; i++) {
            assert.ok(i < 1_000, "the lease was not renewed");
            ends.add((await rowOf(second)).expireTimeMs);
            await sleep(10);
          }
          return 1;
        };
        assert.equal(await createNode(first, "one", counter({ run }), { leaseMs: SHORT_LEASE_MS }).runNow(), 1);
        const [start = 0, , end = 0] = [...ends].sort((one, other) => one - other);
        assert.ok(end - start >= SHORT_LEASE_MS / 3, `${end - start} ms`);
      }));

    test("the run of a node that lost its lease is told to end", () =>
      onTwoNodes(async (first, second) => {
        const job = counter({
          async run({ signal }) {
            await second.write(async (tx) => {
              const row = await rowIn(tx);
              await tx.jobs.put({ ...row, holder: "two", fence: row.fence + 1 });
            });
            for (let i = 0; !signal.aborted; i++) {
              assert.ok(i < 500, "the signal was not aborted");
              await sleep(10);
            }
            assert.ok(signal.reason instanceof LeaseLostError);
            return 1;
          },
        });
        assert.equal(
          await createNode(first, "one", job, { leaseMs: SHORT_LEASE_MS }).runNow(),
          0,
          "what it returns is not recorded",
        );
        assert.equal((await rowOf(first)).startTimeMs, null);
      }));

    test("what a run returned or threw is recorded with the next time", () =>
      onTwoNodes(async (store) => {
        let failing = false;
        const job = counter({
          intervalMs: HOUR_MS,
          async run({ write }) {
            if (failing) throw new Error("no disk");
            return write(count);
          },
        });
        const node = createNode(store, "one", job, { random: () => 0 });
        await node.runNow();
        const first = await rowOf(store);
        assert.deepEqual([first.changes, first.failures, first.error], [1, 0, null]);
        assert.equal((first.nextTimeMs ?? 0) - (first.startTimeMs ?? 0), HOUR_MS);
        assert.ok((first.durationMs ?? -1) >= 0);
        failing = true;
        for (const failures of [1, 2]) {
          await assert.rejects(node.runNow(), /no disk/);
          const row = await rowOf(store);
          assert.deepEqual([row.changes, row.failures, row.error], [null, failures, "no disk"]);
          assert.equal((row.nextTimeMs ?? 0) - (row.errorTimeMs ?? 0), 500 * failures);
        }
        failing = false;
        await node.runNow();
        const last = await rowOf(store);
        assert.deepEqual([last.changes, last.failures, last.error], [2, 0, "no disk"], "the last error stays");
      }));

    test("a job that another node did is not due before its time", () =>
      onTwoNodes(async (first, second) => {
        const job = counter({ intervalMs: HOUR_MS });
        const one = createNode(first, "one", job);
        one.start();
        await waitUntil(async () => (await first.read((tx) => tx.jobs.find("counter")))?.changes === 1);
        await one.stop();
        const two = createNode(second, "two", job);
        two.start();
        await sleep(100);
        await two.stop();
        assert.equal(await first.read((tx) => tx.settings.find("count")), "1");
        await first.write(async (tx) => tx.jobs.put({ ...(await rowIn(tx)), nextTimeMs: 0 }));
        const three = createNode(second, "three", job);
        three.start();
        await waitUntil(async () => (await first.read((tx) => tx.settings.find("count"))) === "2");
        await three.stop();
      }));

    test("a job runs once more when the service stops, if it says so", () =>
      onTwoNodes(async (store) => {
        const node = createNode(store, "one", counter({ runsAtStop: true, intervalMs: HOUR_MS }));
        await node.runNow();
        await node.stop();
        assert.equal(await store.read((tx) => tx.settings.find("count")), "2");
        const { holder, expireTimeMs } = await rowOf(store);
        assert.deepEqual({ holder, expireTimeMs }, { holder: "one", expireTimeMs: 0 });
      }));

    test("stop tells a run to end and waits for it", () =>
      onTwoNodes(async (store) => {
        let run: JobRun | undefined;
        const job = counter({
          async run(started) {
            run = started;
            await waitUntil(() => started.signal.aborted);
            return started.write(count);
          },
        });
        const node = createNode(store, "one", job);
        node.start();
        await waitUntil(() => run);
        await node.stop();
        assert.equal(await store.read((tx) => tx.settings.find("count")), "1");
        assert.deepEqual(node.problems, []);
      }));
  });

  /** Ends the lease, as time does when nothing renews it. */
  async function expire(store: Store): Promise<void> {
    await store.write(async (tx) => {
      await tx.jobs.put({ ...(await rowIn(tx)), expireTimeMs: 0 });
    });
  }

  async function rowIn(tx: Tx): Promise<JobRow> {
    return (await tx.jobs.find("counter")) ?? assert.fail("the job has no row");
  }
}
