// The keys of the registry: which it trusts, and which signs.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { afterEach, beforeEach, test } from "node:test";
import { computeLibtrustFingerprint, generateKey } from "../../../src/issuer/keys/key-generation.js";
import type { KeyRing } from "../../../src/issuer/keys/key-ring.js";
import { rotateRegistryKey } from "../../../src/issuer/keys/key-states.js";
import { execFileSync } from "../../support/child-process.js";
import { DAY, type KeyKit, openKit, schedule } from "./key-kit.js";

let kit: KeyKit;
let ring: KeyRing;

beforeEach(async () => {
  kit = await openKit();
  ring = await kit.node();
});
afterEach(() => kit.close());

const fingerprintTrusted = () => ring.listRegistryKeys().map(({ publicKey }) => computeLibtrustFingerprint(publicKey));

async function states(): Promise<Record<string, string>> {
  const rows = await kit.store.read((tx) => tx.keys.list());
  return Object.fromEntries(rows.filter(({ purpose }) => purpose === "registry").map(({ kid, state }) => [kid, state]));
}

async function rotate(): Promise<string> {
  kit.nowMs += 10_000;
  const spare = generateKey("registry", kit.masterKey, kit.nowMs);
  const { kid } = await kit.store.write((tx) => rotateRegistryKey(tx, spare));
  await ring.refresh();
  return kid;
}

test("a key is called by its libtrust fingerprint, worked out here by other programs", () => {
  const [pair] = ring.listRegistryKeys();
  assert.ok(pair);
  const der = pair.publicKey.export({ type: "spki", format: "der" });
  const base32 = execFileSync("base32", ["-w0"], { input: createHash("sha256").update(der).digest().subarray(0, 30) });
  const groups = base32.toString().match(/.{4}/g) ?? [];
  assert.equal(groups.length, 12);
  assert.equal(computeLibtrustFingerprint(pair.publicKey), groups.join(":"));
});

test("of two keys the registry trusts both and one signs, and every rotation keeps it so", async () => {
  const first = ring.getRegistrySigningKey().kid;
  assert.equal(fingerprintTrusted().length, 2);
  assert.equal(fingerprintTrusted()[0], first, "the one that signs comes first");
  const [second] = fingerprintTrusted().filter((kid) => kid !== first);
  assert.deepEqual(await states(), { [first]: "active", [String(second)]: "pending" });
  assert.equal(await rotate(), second);
  assert.equal(ring.getRegistrySigningKey().kid, second);
  assert.equal(fingerprintTrusted().length, 2);
  assert.equal(fingerprintTrusted()[0], second, "the one that signs comes first");
  assert.ok(!fingerprintTrusted().includes(first), "what was rotated away is handed out no more");
  const [third] = fingerprintTrusted().filter((kid) => kid !== second);
  assert.deepEqual(await states(), { [first]: "verify", [String(second)]: "active", [String(third)]: "pending" });
  assert.equal(await rotate(), third);
  assert.ok(!(first in (await states())), "and forgotten with the next rotation");
});

test("nothing but a command rotates them, and a node that opens makes none anew", async () => {
  const before = await states();
  kit.nowMs += 400 * DAY;
  for (let i = 0; i < 3; i++) await ring.advanceKeys(schedule);
  await kit.node();
  assert.deepEqual(await states(), before);
});

test("they are used for nothing else", () => {
  const { kid } = ring.getRegistrySigningKey();
  assert.equal(ring.findVerifyingKey(kid), undefined);
  assert.equal(ring.findAuditVerifyingKey(kid), undefined);
  assert.ok(!ring.listPublicJwks().some((jwk) => (jwk as { kid?: string }).kid === kid));
});
