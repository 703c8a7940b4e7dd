// Expired logins are deleted a few rows at a time, so that no other call waits for it, and all of them go.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Installation, openInstallation } from "../../src/app/installation.js";
import { resolveSettings } from "../../src/config/config.js";
import { deleteExpired } from "../../src/issuer/maintenance.js";
import type { Store, Tx } from "../../src/store/port.js";
import { tempDir } from "../support/temp-dir.js";

/** As large as rows of logins could once be; smaller ones are faster. */
const ROW_BYTES = 48 * 1024;
const ROWS = 3_000;
const MAX_STATEMENT_MS = 20;

let installation: Installation;
before(async () => {
  installation = await openInstallation({ settings: resolveSettings({ flags: { data: tempDir() }, env: {} }) });
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
function timedStore(store: Store, times: number[]): Store {
  const timedTx = (tx: Tx): Tx =>
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
  return { ...store, write: (work) => store.write((tx) => work(timedTx(tx))) };
}

test(`${ROWS} expired logins of ${ROW_BYTES} bytes go without holding up anybody for long`, async (t) => {
  const { store } = installation;
  await insertTickets(store, 0, ROWS, 1_000);
  await insertTickets(store, ROWS, 1, 3_000);
  const times: number[] = [];
  const timed = timedStore(store, times);
  await deleteExpired(timed, 2_000, () => false);
  const left = await store.write(async (tx) => tx.tickets.sweep(2_000, 10));
  assert.equal(left, 0, "none is left");
  const kept = await store.read((tx) => tx.tickets.get("device", ROWS.toString(16).padStart(64, "0")));
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
  let asked = 0;
  await deleteExpired(store, 2_000, () => ++asked > 1);
  assert.equal(await store.write(async (tx) => tx.tickets.sweep(2_000, 500)), 200);
});
