// Which keys a node has in memory, and when it reads the store for others.
import assert from "node:assert/strict";
import { type KeyObject, sign, verify } from "node:crypto";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { calculateJwkThumbprint, type JWK } from "jose";
import { generateTokenKey } from "../../../src/issuer/keys/key-generation.js";
import type { KeyRing } from "../../../src/issuer/keys/key-ring.js";
import { addSuccessor, type KeyStateChange, revokeKey, rotateKey } from "../../../src/issuer/keys/key-states.js";
import { createKeyReload, createKeyRotation } from "../../../src/issuer/maintenance.js";
import { createJobs } from "../../../src/jobs/jobs.js";
import { unavailable } from "../../../src/kernel/errors.js";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import type { Store } from "../../../src/store/store.js";
import type { KeyPurpose } from "../../../src/store/tables/tokens.js";
import { startStopwatch } from "../../support/stopwatch.js";
import { waitUntil } from "../../support/wait-until.js";
import { type KeyKit, newKey, openKit, SECOND, schedule } from "./key-kit.js";
import { keyNodesSuite } from "./nodes-suite.js";

let kit: KeyKit;
let ring: KeyRing;
/** The reads that `ring` makes of the store; they fail while `down`. */
let reads: number;
let down: boolean;

beforeEach(async () => {
  kit = await openKit();
  [reads, down] = [0, false];
  const watched: Store = {
    ...kit.store,
    read(unit, options) {
      reads++;
      if (down) throw unavailable("the database cannot be reached");
      return kit.store.read(unit, options);
    },
  };
  ring = await kit.node(0, watched);
  reads = 0;
});
afterEach(() => kit.close());

async function rotate(purpose: KeyPurpose = "api-token"): Promise<string> {
  const row = await newKey(purpose, kit.masterKey, ++kit.nowMs);
  await kit.store.write((tx) => rotateKey(tx, row));
  return row.kid;
}

describe("the key ring", () => {
  test("signs what its public key verifies", () => {
    const { kid, key } = ring.getSigningKey();
    const publicKey = ring.findVerifyingKey(kid);
    assert.ok(publicKey);
    assert.equal(publicKey.type, "public");
    const signature = sign("sha256", Buffer.from("text"), key);
    assert.equal(verify("sha256", Buffer.from("text"), publicKey, signature), true);
    assert.equal(ring.findVerifyingKey(ring.getAuditSigningKey().kid), undefined, "and keys never serve two purposes");
    assert.equal(ring.findAuditVerifyingKey(kid), undefined);
  });

  test("publishes public members alone, the newest key first, named by their thumbprints", async () => {
    const first = ring.getSigningKey().kid;
    const second = await rotate();
    const third = await generateTokenKey("ES256", kit.masterKey, ++kit.nowMs);
    await kit.store.write((tx) => addSuccessor(tx, third));
    await rotate("audit");
    await ring.advanceKeys(schedule);
    const published = ring.listPublicJwks();
    assert.deepEqual(
      published.map(({ kid }) => kid),
      [third.kid, second, first],
    );
    for (const jwk of published) {
      assert.deepEqual(Object.keys(jwk).sort(), ["alg", "crv", "kid", "kty", "use", "x", "y"]);
      assert.deepEqual([jwk.kty, jwk.crv, jwk.alg, jwk.use], ["EC", "P-256", "ES256", "sig"]);
      assert.equal(await calculateJwkThumbprint(jwk as JWK), jwk.kid);
    }
  });

  test("publishes no key that was put beside a sealed one", async () => {
    const before = ring.listPublicJwks();
    const strange = await generateTokenKey("ES256", kit.masterKey, 0);
    const db = openDatabase(join(kit.directory, "arbor.db"));
    db.prepare("UPDATE keys SET public_jwk = ?").run(strange.publicJwk);
    db.close();
    assert.deepEqual((await kit.node()).listPublicJwks(), before);
    const db2 = openDatabase(join(kit.directory, "arbor.db"));
    db2.prepare("UPDATE keys SET sealed = ? WHERE purpose = 'api-token'").run(strange.sealed);
    db2.close();
    await assert.rejects(kit.node(), /does not open what is stored \(api-token /);
  });

  test("keeps a key the same object for as long as it is trusted", async () => {
    const objects = new Map<string, KeyObject>();
    for (let i = 0; i < 5; i++) {
      await rotate();
      await ring.advanceKeys(schedule);
      for (const { kid } of ring.listPublicJwks()) {
        const key = ring.findVerifyingKey(String(kid));
        assert.ok(key);
        assert.equal(objects.get(String(kid)) ?? key, key);
        objects.set(String(kid), key);
      }
    }
    assert.equal(objects.size, 6);
  });

  test("reads the keys again each time, and once for all who ask before a read begins", async () => {
    const kid = await rotate();
    await ring.refresh();
    assert.ok(ring.findVerifyingKey(kid));
    assert.equal(reads, 1);
    const next = await rotate();
    await Promise.all(Array.from({ length: 1_000 }, () => ring.refresh()));
    assert.ok(ring.findVerifyingKey(next));
    assert.equal(reads, 2);
  });

  test("shares no read that began before the caller asked", async () => {
    let ended: string | undefined;
    const slow: Store = {
      ...kit.store,
      async read(unit, options) {
        const found = await kit.store.read(unit, options);
        // Committed after the read, and before it is answered.
        ended ??= await rotate();
        return found;
      },
    };
    const node = await kit.node(0, slow);
    ended = undefined;
    const first = node.refresh();
    while (ended === undefined) await sleep(1);
    await Promise.all([first, node.refresh()]);
    assert.ok(node.findVerifyingKey(ended));
  });

  test("reads the keys in a transaction, and leaves those in memory", async () => {
    const before = ring.getSigningKey();
    const kid = await rotate();
    const found = await kit.store.read((tx) => ring.at(tx));
    assert.equal(found.getSigningKey().kid, kid);
    assert.equal(
      found.findVerifyingKey(before.kid),
      ring.findVerifyingKey(before.kid),
      "known keys are the same objects",
    );
    assert.equal(ring.getSigningKey(), before);
    assert.equal(reads, 0);
  });

  test("keeps its keys when a read fails", async () => {
    const { kid } = ring.getSigningKey();
    down = true;
    for (let i = 0; i < 3; i++) await assert.rejects(ring.refresh(), /cannot be reached/);
    await assert.rejects(ring.advanceKeys(schedule), /cannot be reached/);
    assert.ok(ring.findVerifyingKey(kid));
    down = false;
    const next = await rotate();
    await ring.refresh();
    assert.ok(ring.findVerifyingKey(next));
  });

  test("writes nothing during maintenance while nothing is due", async () => {
    await ring.advanceKeys(schedule);
    reads = 0;
    let writes = 0;
    const watched: Store = {
      ...kit.store,
      write(unit, options) {
        writes++;
        return kit.store.write(unit, options);
      },
    };
    const node = await kit.node(0, watched);
    writes = 0;
    for (let i = 0; i < 100; i++) {
      kit.nowMs += 600 * SECOND;
      await node.advanceKeys(schedule);
    }
    assert.equal(writes, 0);
  });

  test("page tokens and the log change keys at once, and trust the old ones for ever", async () => {
    const [page] = ring.pageKeys();
    const audit = ring.getAuditSigningKey().kid;
    const [newPage, newAudit] = [await rotate("page-token"), await rotate("audit")];
    kit.nowMs += 365 * 24 * 3_600 * SECOND;
    await ring.advanceKeys(schedule);
    assert.deepEqual(
      ring.pageKeys().map(({ id }) => id),
      [newPage, page?.id],
    );
    assert.equal(ring.getAuditSigningKey().kid, newAudit);
    assert.ok(ring.findAuditVerifyingKey(audit));
  });
});

describe("the maintenance of keys", () => {
  test("reads revocations of other nodes within seconds, and reports a problem once", async () => {
    const moves: KeyStateChange[] = [];
    const problems: string[] = [];
    const onProblem = (problem: string, cause: unknown) => void problems.push(`${problem}: ${cause}`);
    const jobs = createJobs({ store: kit.store, holder: "node", onProblem });
    const onKeyStateChange = (move: KeyStateChange) => void moves.push(move);
    jobs.add(createKeyRotation({ keys: ring, schedule: { ...schedule, active: 0 }, onKeyStateChange }));
    const reload = createKeyReload({ keys: ring, onProblem });
    jobs.start();
    reload.start();
    await waitUntil(() => moves.length > 0);
    assert.deepEqual(
      moves.map(({ state }) => state),
      ["pending"],
    );
    down = true;
    const before = reads;
    await waitUntil(() => reads >= before + 2);
    down = false;
    const { kid } = ring.getSigningKey();
    const spare = await generateTokenKey("ES256", kit.masterKey, kit.nowMs);
    await kit.store.write((tx) => revokeKey(tx, kid, spare));
    const elapsedMs = startStopwatch();
    await waitUntil(() => ring.findVerifyingKey(kid) === undefined);
    assert.ok(elapsedMs() < 2_500);
    assert.equal(ring.getSigningKey().kid, spare.kid);
    assert.equal(problems.length, 1);
    assert.match(problems[0] ?? "", /^the keys could not be read again and will be tried again: .*cannot be reached/);
    await Promise.all([jobs.stop(), reload.stop()]);
    reads = 0;
    await sleep(1_500);
    assert.equal(reads, 0);
  });
});

keyNodesSuite(async () => undefined);
