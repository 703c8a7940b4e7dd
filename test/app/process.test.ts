// Errors that nothing catches, planted from outside the source into a service under load: the process ends
// with its own exit code in time, and what it has done and what it has said agree.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { openInstallation } from "../../src/app/installation.js";
import { resolveSettings } from "../../src/config/config.js";
import { bootstrap } from "../../src/iam/operator/bootstrap.js";
import { issueToken } from "../../src/issuer/tokens.js";
import { randomIds } from "../../src/kernel/ids.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { chooseScale, sample } from "../support/scale.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { type Ended, startWriters, supervise, type Written } from "./supervised.js";

const BASE_URL = "http://arbor.test";
const MAX_END_MS = 5_000;
/** How often each fault ends the service, which is started again on the same data each time. */
const TIMES = chooseScale(3, 1);
/** Writes acknowledged by each run before its fault comes, which is then under load. */
const WRITES = 50;

const faults = [
  ["timer", "uncaughtException"],
  ["callback", "uncaughtException"],
  ["rejection", "unhandledRejection"],
  ["repeat", "uncaughtException"],
] as const;

describe("errors that nothing catches, one after the other", () => {
  const planted = Array.from({ length: TIMES }, () => faults).flat();
  let outcome: Outcome;
  before(async () => {
    outcome = await run(planted.map(([fault]) => fault));
  });

  for (const [i, [fault, event]] of planted.entries()) {
    test(`${fault}: the process ends with 70 in time, and logs why`, (t) => {
      const { code, signal, ms, log } = outcome.ends[i] as Ended;
      assert.deepEqual([code, signal], [70, null], log);
      assert.ok(ms < MAX_END_MS, `it took ${ms} ms`);
      const fatal = log.split("\n").filter((line) => line.includes('"fatal"'));
      assert.match(fatal[0] ?? "", /planted/);
      assert.match(fatal[0] ?? "", new RegExp(event));
      t.diagnostic(`ended after ${ms.toFixed(0)} ms`);
    });
  }

  test("every write that was acknowledged is there, and no other", (t) => {
    const { acknowledged, unanswered, stored, problems } = outcome;
    assert.ok(acknowledged.size >= planted.length * WRITES, `only ${acknowledged.size} writes were acknowledged`);
    assert.deepEqual(findMissing(stored, acknowledged), [], "acknowledged and lost");
    assert.deepEqual(findMissing(acknowledged, stored), [], "stored and never acknowledged");
    assert.deepEqual(problems, []);
    t.diagnostic(`${acknowledged.size} acknowledged, ${unanswered.size} without an answer`);
  });
});

test("a peer that never sends the rest of its request does not hold up the end", async (t) => {
  const { ends } = await run(["timer"], { slowPeer: true });
  assert.equal(ends[0]?.code, 70);
  const ms = ends[0]?.ms ?? Number.NaN;
  assert.ok(ms > 1_000 && ms < MAX_END_MS, `it took ${ms} ms`);
  t.diagnostic(`ended after ${ms.toFixed(0)} ms`);
});

describe("control", () => {
  for (const fault of sample(["timer", "callback", "rejection"], 0)) {
    test(`${fault}: without the last resort the process ends with another code`, async () => {
      const { ends, acknowledged, stored } = await run([fault], { control: true });
      assert.notEqual(ends[0]?.code, 70);
      assert.doesNotMatch(ends[0]?.log ?? "", /"fatal"/);
      assert.deepEqual(findMissing(stored, acknowledged), [], "the store itself loses nothing either way");
    });
  }
});

interface Outcome extends Pick<Written, "acknowledged" | "unanswered"> {
  readonly ends: readonly Ended[];
  readonly stored: ReadonlySet<string>;
  readonly problems: readonly string[];
}

async function run(planted: readonly string[], options: { control?: boolean; slowPeer?: boolean } = {}) {
  const data = tempDir();
  const { group, token } = await organisationIn(data);
  const service = supervise(data, BASE_URL, planted, options.control);
  const writers = startWriters(service, token, group);
  const ends: Ended[] = [];
  for (let i = 0; i < planted.length; i++) {
    if (options.slowPeer) await halfRequest(await service.url());
    const before = writers.acknowledged.size;
    await waitUntil(() => writers.acknowledged.size >= before + WRITES);
    ends.push(await service.fail());
  }
  await service.url();
  await writers.stop();
  await service.stop();
  const db = openDatabase(join(data, "arbor.db"), { readonly: true });
  const names = db.prepare("SELECT name FROM groups WHERE parent_uid = ?").pluck().all(group) as string[];
  const problems = inconsistenciesIn(db);
  db.close();
  return { ends, stored: new Set(names), problems, ...writers };
}

async function halfRequest(url: string): Promise<void> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => {});
  socket.write("POST /iam/v2beta1/groups HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{");
  await once(socket, "connect");
}

function findMissing(set: ReadonlySet<string>, names: ReadonlySet<string>): string[] {
  return [...names].filter((name) => !set.has(name));
}

async function organisationIn(data: string): Promise<{ group: string; token: string }> {
  const settings = resolveSettings({ flags: { data, baseUrl: BASE_URL }, env: {} });
  const { store, keys, close } = await openInstallation({ mode: "create", settings });
  const nowMs = Date.now();
  const made = await store.write((tx) => bootstrap(tx, { org: "supervised" }, randomIds, nowMs));
  const request = { issuer: BASE_URL, audience: BASE_URL, identity: made.identity, lifeS: 3_600, atMs: nowMs };
  const token = await issueToken(request, keys, randomIds);
  await close();
  return { group: made.group, token };
}
