// The life of the keys of API tokens, as one node sees it.
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { KeyRing } from "../../../src/issuer/keys/key-ring.js";
import { addSuccessor, buildKeySchedule, revokeKey, rotateKey } from "../../../src/issuer/keys/key-states.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { isExpired } from "../../../src/pipeline/auth/api-token.js";
import type { KeyPurpose, KeyRow, KeyState } from "../../../src/store/tables/tokens.js";
import type { Tx } from "../../../src/store/transaction.js";
import { DAY, HOUR, type KeyKit, MINUTE, newKey, openKit, SECOND, schedule } from "./key-kit.js";

const PENDING = 330 * SECOND;
const VERIFY = 3_630 * SECOND;

let kit: KeyKit;
let ring: KeyRing;

beforeEach(async () => {
  kit = await openKit();
  ring = await kit.node();
});
afterEach(() => kit.close());

/** The states of the keys, oldest first, and the time until the next change of each. */
async function states(): Promise<(readonly [KeyState, number | null])[]> {
  return (await kit.rows()).map(({ state, nextTimeMs }) => [
    state,
    nextTimeMs === null ? null : nextTimeMs - kit.nowMs,
  ]);
}

async function advanceAfter(ms: number) {
  kit.nowMs += ms;
  return (await ring.advanceKeys(schedule)).map(({ state }) => state);
}

async function kidsOf(state: KeyState): Promise<string[]> {
  return (await kit.rows()).filter((row) => row.state === state).map(({ kid }) => kid);
}

function hasReason(reason: string) {
  return (error: unknown) => error instanceof ApiError && error.reason === reason;
}

describe("the schedule", () => {
  const cases: readonly { rotationS: number; maxAgeS: number; pendingS: number }[] = [
    { rotationS: 2_592_000, maxAgeS: 300, pendingS: 330 },
    { rotationS: 86_400, maxAgeS: 30, pendingS: 60 },
    { rotationS: 5, maxAgeS: 2, pendingS: 4 },
    { rotationS: 1, maxAgeS: 1, pendingS: 2 },
  ];
  for (const { rotationS, maxAgeS, pendingS } of cases) {
    test(`keys kept for ${maxAgeS} s wait ${pendingS} s`, () => {
      const { pending, active, verify } = buildKeySchedule({ keyRotation: rotationS, jwksMaxAge: maxAgeS });
      assert.deepEqual([pending, active, verify], [pendingS * SECOND, rotationS * SECOND, VERIFY]);
    });
  }

  test("a key verifies until the last token that it may have signed has expired", () => {
    const expiresAt = (kit.nowMs + HOUR) / SECOND;
    const last = { identityUid: "", tokenId: "", issuedAt: expiresAt - 3_600, expiresAt };
    assert.equal(isExpired(last, kit.nowMs + schedule.verify), false);
    assert.equal(isExpired(last, kit.nowMs + schedule.verify + 1), true);
  });
});

describe("keys that change state on schedule", () => {
  test("the first key is in use at once, and signs for as long as is set", async () => {
    assert.deepEqual(await states(), [["active", null]]);
    assert.deepEqual(await advanceAfter(0), []);
    assert.deepEqual(await states(), [["active", 30 * DAY]]);
    const first = ring.getSigningKey();
    assert.deepEqual(await advanceAfter(30 * DAY - PENDING - 1), []);
    assert.deepEqual(await advanceAfter(1), ["pending"]);
    assert.deepEqual(await states(), [
      ["active", PENDING],
      ["pending", PENDING],
    ]);
    assert.equal(ring.getSigningKey().key, first.key);
    assert.deepEqual(await advanceAfter(PENDING - 1), []);
    assert.equal(ring.getSigningKey().key, first.key);
    assert.deepEqual(await advanceAfter(1), ["verify", "active"]);
    assert.notEqual(ring.getSigningKey().kid, first.kid);
    assert.deepEqual(await states(), [
      ["verify", VERIFY],
      ["active", 30 * DAY],
    ]);
    assert.deepEqual(await advanceAfter(VERIFY - 1), []);
    assert.ok(ring.findVerifyingKey(first.kid));
    assert.deepEqual(await advanceAfter(1), ["removed"]);
    assert.equal(ring.findVerifyingKey(first.kid), undefined);
    assert.equal((await states()).length, 1);
  });

  test("every key but the first signs exactly as long as is set", async () => {
    const quick = buildKeySchedule({ keyRotation: 60, jwksMaxAge: 2 });
    const starts: number[] = [];
    let kid = ring.getSigningKey().kid;
    for (let s = 0; s < 400; s++) {
      kit.nowMs += SECOND;
      await ring.advanceKeys(quick);
      if (ring.getSigningKey().kid !== kid) starts.push(s);
      kid = ring.getSigningKey().kid;
    }
    assert.deepEqual(
      starts.map((s) => s - (starts[0] ?? 0)),
      [0, 60, 120, 180, 240, 300],
    );
  });

  test("where a key is to sign for less than it waits, one follows the other", async () => {
    const hasty = buildKeySchedule({ keyRotation: 1, jwksMaxAge: 60 });
    const states = new Set<string>();
    for (let s = 0; s < 600; s++) {
      kit.nowMs += SECOND;
      await ring.advanceKeys(hasty);
      states.add(ring.getSigningKey().kid);
    }
    // Each waits for 90 s, and is made a second after the one before began.
    assert.equal(states.size, 1 + Math.floor(600 / 91));
  });

  const sleeps: readonly { name: string; asleep: "with a successor waiting" | "without one"; ms: number }[] = [
    { name: "an hour", asleep: "with a successor waiting", ms: HOUR },
    { name: "a year", asleep: "with a successor waiting", ms: 365 * DAY },
    { name: "a year", asleep: "without one", ms: 365 * DAY },
  ];
  for (const { name, asleep, ms } of sleeps) {
    test(`after ${name} asleep, ${asleep}`, async () => {
      await advanceAfter(0);
      const [old] = await kidsOf("active");
      if (asleep === "without one") {
        assert.deepEqual(await advanceAfter(ms), ["pending"], "one that is new is not used at once");
        assert.deepEqual(await kidsOf("active"), [old]);
        assert.deepEqual(await advanceAfter(PENDING), ["verify", "active"]);
      } else {
        await advanceAfter(30 * DAY - PENDING);
        assert.deepEqual(await advanceAfter(ms), ["verify", "active"]);
      }
      assert.deepEqual(await kidsOf("verify"), [old], "what the old one signed a moment ago is valid");
      assert.equal((await kidsOf("active")).length, 1);
    });
  }

  test("plans made while a clock was a year ahead do not last", async () => {
    await advanceAfter(0);
    await advanceAfter(365 * DAY);
    await advanceAfter(PENDING);
    await advanceAfter(30 * DAY - PENDING);
    assert.deepEqual(
      (await states()).map(([state]) => state),
      ["active", "pending"],
    );
    kit.nowMs -= 395 * DAY;
    assert.deepEqual(await advanceAfter(0), []);
    assert.deepEqual(await states(), [
      ["active", 30 * DAY],
      ["pending", PENDING],
    ]);
    assert.deepEqual(await advanceAfter(PENDING), ["verify", "active"]);
    assert.deepEqual(await advanceAfter(VERIFY), ["removed"]);
  });

  test("a shorter life of keys holds for those there are", async () => {
    await advanceAfter(0);
    const day = buildKeySchedule({ keyRotation: 24 * 3600, jwksMaxAge: 300 });
    await ring.advanceKeys(day);
    assert.deepEqual(await states(), [["active", DAY]]);
  });

  test("keys for other purposes stay as they are", async () => {
    const others = async () =>
      (await kit.store.read((tx) => tx.keys.list())).filter((row) => row.purpose !== "api-token");
    for (const purpose of ["page-token", "audit"] as const) {
      const row = await newKey(purpose, kit.masterKey, kit.nowMs);
      await kit.store.write((tx) => rotateKey(tx, row));
    }
    const before = await others();
    for (let i = 0; i < 50; i++) await advanceAfter(20 * DAY);
    assert.deepEqual(await others(), before);
    const states = ["active", "active", "active", "pending", "verify", "verify"];
    assert.deepEqual(before.map(({ state }) => state).sort(), states);
  });
});

describe("keys that are moved by command", () => {
  // Never two at the same time, since the order of those would be chance.
  const spare = (purpose: KeyPurpose = "api-token") => newKey(purpose, kit.masterKey, ++kit.nowMs);

  const withKey =
    <T>(key: KeyRow, unit: (tx: Tx, key: KeyRow) => T) =>
    (tx: Tx) =>
      unit(tx, key);

  test("a successor is pending from when a server has read it, and is the only one", async () => {
    await advanceAfter(0);
    const first = await kit.store.write(withKey(await spare(), (tx, key) => addSuccessor(tx, key)));
    assert.deepEqual(await kit.store.write(withKey(await spare(), (tx, key) => addSuccessor(tx, key))), {
      kid: first.kid,
      isNew: false,
    });
    assert.deepEqual(await kidsOf("pending"), [first.kid]);
    assert.deepEqual(await advanceAfter(DAY), [], "nobody published it until now");
    assert.deepEqual(await advanceAfter(PENDING - 1), []);
    assert.deepEqual(await advanceAfter(1), ["verify", "active"]);
    assert.equal(ring.getSigningKey().kid, first.kid);
  });

  const revoked: readonly { state: KeyState; left: readonly KeyState[]; replaced: boolean }[] = [
    { state: "active", left: ["verify", "pending", "active"], replaced: true },
    { state: "pending", left: ["verify", "active"], replaced: false },
    { state: "verify", left: ["active", "pending"], replaced: false },
  ];
  for (const { state, left, replaced } of revoked) {
    test(`one that is ${state} is revoked at once`, async () => {
      await advanceAfter(0);
      await kit.store.write(withKey(await spare(), (tx, key) => addSuccessor(tx, key)));
      await advanceAfter(0);
      await advanceAfter(PENDING);
      await kit.store.write(withKey(await spare(), (tx, key) => addSuccessor(tx, key)));
      await advanceAfter(MINUTE);
      const [kid = ""] = await kidsOf(state);
      const key = await spare();
      assert.ok(ring.findVerifyingKey(kid));
      assert.deepEqual(await kit.store.write((tx) => revokeKey(tx, kid, key)), { state, replaced });
      await advanceAfter(0);
      assert.equal(ring.findVerifyingKey(kid), undefined);
      assert.equal(
        ring.listPublicJwks().some((jwk) => jwk.kid === kid),
        false,
      );
      assert.deepEqual(
        (await states()).map(([now]) => now),
        left,
      );
      assert.equal(ring.getSigningKey().kid === key.kid, replaced);
    });
  }

  test("rejects the revocation of keys for other purposes", async () => {
    const audit = ring.getAuditSigningKey().kid;
    const page = ring.pageKeys()[0]?.id ?? "";
    const revoke = async (kid: string) => kit.store.write(withKey(await spare(), (tx, key) => revokeKey(tx, kid, key)));
    const before = await kit.store.read((tx) => tx.keys.list());
    await assert.rejects(revoke(audit), hasReason("FAILED_PRECONDITION"));
    await assert.rejects(revoke(page), hasReason("FAILED_PRECONDITION"));
    await assert.rejects(revoke("nothing"), hasReason("NOT_FOUND"));
    assert.deepEqual(await kit.store.read((tx) => tx.keys.list()), before);
  });

  test("a key that takes over at once leaves the one before trusted for as long as its tokens live", async () => {
    await advanceAfter(0);
    await kit.store.write(withKey(await spare(), (tx, key) => rotateKey(tx, key)));
    await advanceAfter(0);
    assert.deepEqual(await states(), [
      ["verify", VERIFY],
      ["active", 30 * DAY],
    ]);
  });

  test("kids are valid arguments of commands", async () => {
    for (let i = 0; i < 600; i++) assert.match((await spare(i % 2 ? "audit" : "api-token")).kid, /^[\w][\w-]{42}$/);
  });
});
