// Events and the audit log: what only sealed rows, changed rows and old rows mean for delivery; and what callers change.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import {
  listDeliveries,
  readState,
  redeliver,
  redeliverSince,
  resume,
  suspend,
} from "../../src/events/delivery/control.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import type { Tx } from "../../src/store/transaction.js";
import { restAs } from "../contract/rest.js";
import { newDataDir } from "../support/data-dir.js";
import { type Harness, startHarness } from "../support/harness.js";
import { scrape } from "../support/metrics.js";
import { waitUntil } from "../support/wait-until.js";
import { RECEIVER_SETTINGS, type Received, startReceiver } from "./receiver.js";

const data = newDataDir();
let harness: Harness;
let organisations = 0;
const lines: string[] = [];
const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
before(async () => {
  harness = await startHarness({ ...RECEIVER_SETTINGS, data, metricsListen: "127.0.0.1:0" }, { logger });
});
const isLogged = (text: string) => waitUntil(async () => lines.some((line) => line.includes(text)));
after(() => harness.stop());

const write = <T>(unit: (tx: Tx) => Promise<T>) => harness.app.installation.store.write(unit);
const read = <T>(unit: (tx: Tx) => Promise<T>) => harness.app.installation.store.read(unit);

async function subscribe(answer: Parameters<typeof startReceiver>[0] = () => 200) {
  const receiver = await startReceiver(answer);
  const { group, token } = await harness.organisation(`log${++organisations}`);
  const rest = restAs(harness.url, token, "");
  const { json } = await rest("POST", `/events/v2/subscriptions/${group}`, { sink: receiver.url });
  const createGroup = async (name: string) =>
    String((await rest("POST", `/iam/v2/groups/${group}`, { name })).json?.uid);
  return { receiver, rest, group, uid: String(json?.uid), createGroup };
}

// Results are written after their responses, and a change by a caller in between makes them come again.
const settled = (uid: string) =>
  waitUntil(async () => {
    const { seq, headSeq, waiting } = await read((tx) => readState(tx, uid));
    return seq === headSeq && waiting === 0;
  });

const namesOf = (received: readonly Received[]) =>
  received.map(({ event }) => event.data?.body.name).filter((name) => name !== undefined);

function attack(sql: string, ...values: (string | number)[]): void {
  const db = openDatabase(join(data, "arbor.db"));
  try {
    db.prepare(sql).run(...values);
  } finally {
    db.close();
  }
}

test("a suspended subscription gets nothing, and all of it when it is resumed", async () => {
  const { receiver, uid, createGroup } = await subscribe();
  await receiver.accepted(1);
  await settled(uid);
  await write((tx) => suspend(tx, uid));
  await createGroup("while suspended");
  await sleep(700);
  assert.deepEqual(namesOf(receiver.received), []);
  assert.deepEqual(await read(async (tx) => (await readState(tx, uid)).suspendReason), "caller");
  await write((tx) => resume(tx, uid, Date.now()));
  await receiver.accepted(2);
  receiver.close();
  assert.deepEqual(namesOf(receiver.received), ["while suspended"]);
});

test("events are delivered again with their ids: one, and all since a time", async () => {
  const { receiver, uid, createGroup } = await subscribe();
  await receiver.accepted(1);
  await createGroup("first");
  const sinceMs = Date.now() + 1;
  await sleep(5);
  await createGroup("second");
  await createGroup("third");
  const [, first] = await receiver.accepted(4);
  await settled(uid);
  const [row] = await read(async (tx) =>
    (await tx.audit.listNewest(9)).filter(({ subjectUid }) => subjectUid === first?.event.subject),
  );
  assert.ok(row);
  await write((tx) => redeliver(tx, uid, { auditId: row.id, eventId: "x" }, () => true, Date.now()));
  const again = (await receiver.accepted(5)).at(-1);
  assert.deepEqual([again?.event.id, again?.event.time], [first?.event.id, first?.event.time]);
  await settled(uid);
  await write((tx) => redeliverSince(tx, uid, sinceMs, Date.now()));
  const all = await receiver.accepted(7);
  receiver.close();
  // Different resources have no order.
  const names = namesOf(all);
  assert.deepEqual(
    [names.slice(0, 3).sort(), names[3], names.slice(4).sort()],
    [["first", "second", "third"], "first", ["second", "third"]],
  );
  assert.equal(new Set(all.map(({ event }) => event.id)).size, 4);
  await assert.rejects(
    write((tx) => redeliver(tx, uid, { auditId: 999_999, eventId: "x" }, () => true, Date.now())),
    { reason: "NOT_FOUND" },
  );
});

test("what waits is listed with its last status", async () => {
  const { receiver, uid, createGroup } = await subscribe(({ event }) => (event.data?.body.name === "bad" ? 503 : 200));
  const bad = await createGroup("bad");
  const [row] = await waitUntil(async () => {
    const rows = await read(async (tx) => listDeliveries(tx, uid, { afterSeq: 0, limit: 9 }));
    return rows.length > 0 && rows;
  });
  receiver.close();
  assert.deepEqual(
    [row?.subjectUid, row?.type, row?.lastStatus, row?.lastError, row?.deadTimeMs],
    [bad, "dev.chainguard.api.iam.group.created.v1", 503, "status 503", null],
  );
});

test("an event whose body was changed in the database is not sent", async () => {
  const { receiver, uid, group, createGroup } = await subscribe();
  await receiver.accepted(1);
  await settled(uid);
  await write((tx) => suspend(tx, uid));
  await createGroup("honest");
  await waitUntil(async () => (await read((tx) => readState(tx, uid))).headSeq >= 3);
  attack("UPDATE audit SET body = replace(body, 'honest', 'forged') WHERE root_uid = ?", group);
  await write((tx) => resume(tx, uid, Date.now()));
  await waitUntil(async () => (await read((tx) => readState(tx, uid))).dead === 1);
  await createGroup("later");
  await receiver.accepted(2);
  receiver.close();
  assert.deepEqual(namesOf(receiver.received), ["later"]);
  await isLogged(`the subscription ${uid} has dead letters: entry`);
  const { samples } = await scrape(harness.app.metricsUrl);
  assert.equal(samples.find(({ name }) => name === "arbor_event_dead_letters_total")?.value, 1);
});

test("a row that the log has lost between others is reported, and later events are sent", async () => {
  const { receiver, uid, group, createGroup } = await subscribe();
  await receiver.accepted(1);
  await settled(uid);
  await write((tx) => suspend(tx, uid));
  for (const name of ["before", "lost", "after"]) await createGroup(name);
  await waitUntil(async () => (await read((tx) => readState(tx, uid))).headSeq >= 5);
  attack("DELETE FROM audit WHERE root_uid = ? AND body LIKE '%\"lost\"%'", group);
  await write((tx) => resume(tx, uid, Date.now()));
  await receiver.accepted(3);
  receiver.close();
  assert.deepEqual(namesOf(receiver.received).sort(), ["after", "before"]);
  await isLogged(`the subscription ${uid} misses events: the audit log of ${group} has lost rows`);
});

test("a sink that rejects events is logged once, and the subscription that it suspends", async () => {
  const { receiver, uid } = await subscribe(() => 410);
  await isLogged(`the subscription ${uid} is suspended: gone`);
  receiver.close();
  const rejections = lines.filter((line) =>
    line.includes(`a sink did not accept an event: ${new URL(receiver.url).origin}`),
  );
  assert.equal(rejections.length, 1);
  assert.match(rejections[0] ?? "", /status 410/);
});

test("a changed chain stops its organisation alone", async () => {
  const one = await subscribe();
  const other = await subscribe();
  await one.receiver.accepted(1);
  attack("UPDATE audit_heads SET hash = ? WHERE root_uid = ?", "A".repeat(43), one.group);
  await one.createGroup("unsealed");
  await other.createGroup("sealed");
  await other.receiver.accepted(2);
  await sleep(500);
  one.receiver.close();
  other.receiver.close();
  assert.deepEqual(namesOf(one.receiver.received), []);
  assert.deepEqual(namesOf(other.receiver.received), ["sealed"]);
});
