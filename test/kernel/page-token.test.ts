import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { ApiError } from "../../src/kernel/errors.js";
import { createPageTokens, PAGE_TOKEN_LIFE_MS, type PageKey } from "../../src/kernel/page-token.js";
import { seal } from "../../src/kernel/seal.js";

const FORGED = "Invalid argument: pageToken: pageToken is not one this service made";
const FOREIGN = "Invalid argument: pageToken: pageToken belongs to a list with other filters or another order";
const MINUTE_MS = 60_000;

const newer: PageKey = { id: "00000000000000aa", secret: Buffer.alloc(32, 1) };
const older: PageKey = { id: "00000000000000bb", secret: Buffer.alloc(32, 2) };
const tokens = createPageTokens(() => [newer, older]);
const read = (text: string, list: string, atMs: number) => tokens.read(undefined, text, list, atMs);
const cursor = { key: "core", uid: "0".repeat(40), skip: 3 };
const binding = '["ListGroups",{"field":"name"},{}]';
const nowMs = 1_800_000_000_000;
const token = tokens.create(cursor, binding, nowMs);

function isInvalidPageToken(message: string) {
  return (error: unknown) =>
    error instanceof ApiError && error.code === Code.InvalidArgument && error.message === message;
}

test("a token is text that needs no escaping in a URL", () => assert.match(token, /^[A-Za-z0-9_-]+$/));

test("a token reveals neither the list nor the position", () => {
  const bytes = Buffer.from(token, "base64url").toString("latin1");
  for (const part of [cursor.key, cursor.uid, "ListGroups"]) assert.ok(!bytes.includes(part), part);
});

const ages: readonly { ageMs: number; opens: boolean; reason: string }[] = [
  { ageMs: 0, opens: true, reason: "new" },
  { ageMs: PAGE_TOKEN_LIFE_MS, opens: true, reason: "exactly three days old" },
  { ageMs: PAGE_TOKEN_LIFE_MS + 1, opens: false, reason: "older than three days: the list starts again" },
  { ageMs: 400 * 24 * 60 * MINUTE_MS, opens: false, reason: "a year old is no error either" },
  { ageMs: -5 * MINUTE_MS, opens: true, reason: "made by a clock five minutes ahead" },
  { ageMs: -5 * MINUTE_MS - 1, opens: false, reason: "from further in the future: the list starts again" },
];

for (const { ageMs, opens, reason } of ages) {
  test(`age: ${reason}`, async () => {
    assert.deepEqual(await read(token, binding, nowMs + ageMs), opens ? cursor : undefined);
  });
}

test("a token of another list is rejected, however old", async () => {
  for (const ageMs of [0, PAGE_TOKEN_LIFE_MS * 2]) {
    await assert.rejects(read(token, `${binding} `, nowMs + ageMs), isInvalidPageToken(FOREIGN));
  }
});

test("a key that no longer seals still opens", async () => {
  const before = createPageTokens(() => [older]).create(cursor, binding, nowMs);
  assert.deepEqual(await read(before, binding, nowMs), cursor);
});

test("a key that another process created meanwhile is read, once for each token", async () => {
  let reads = 0;
  const elsewhere = createPageTokens<string>(
    () => [older],
    async (tx) => {
      assert.equal(tx, "tx");
      reads++;
      return [newer, older];
    },
  );
  assert.deepEqual(await elsewhere.read("tx", token, binding, nowMs), cursor);
  assert.equal(reads, 1);
  await assert.rejects(elsewhere.read("tx", "x", binding, nowMs), isInvalidPageToken(FORGED));
  assert.deepEqual(await elsewhere.read("tx", elsewhere.create(cursor, binding, nowMs), binding, nowMs), cursor);
  assert.equal(reads, 1, "and neither for garbage nor for a known key");
});

test("without keys nothing is made", () => {
  assert.throws(() => createPageTokens(() => []).create(cursor, binding, nowMs), /there is no key for page tokens/);
});

const bytes = Buffer.from(token, "base64url");
const sealElsewhere = (context: string, key = newer) =>
  Buffer.concat([Buffer.from(newer.id, "hex"), seal(key.secret, Buffer.from('["x",1,"a","b",0]'), context)]).toString(
    "base64url",
  );

const forgeries: readonly { token: string; reason: string }[] = [
  { token: "x", reason: "garbage" },
  { token: "a".repeat(1_000_000), reason: "a megabyte" },
  { token: token.slice(0, -1), reason: "cut off by a character" },
  { token: token.slice(0, 40), reason: "cut off in the middle" },
  { token: `${token}=`, reason: "padded" },
  { token: `${token}\n`, reason: "with a line feed" },
  { token: ` ${token}`, reason: "with a blank in front" },
  { token: `${token.slice(0, 20)} ${token.slice(20)}`, reason: "with a blank inside" },
  { token: bytes.toString("hex"), reason: "in hex" },
  { token: Buffer.concat([bytes, Buffer.alloc(1)]).toString("base64url"), reason: "a byte longer" },
  {
    token: Buffer.concat([Buffer.from(older.id, "hex"), bytes.subarray(8)]).toString("base64url"),
    reason: "under another key's id",
  },
  {
    token: Buffer.concat([Buffer.alloc(8), bytes.subarray(8)]).toString("base64url"),
    reason: "under an unknown key's id",
  },
  { token: sealElsewhere("arbor page token 2"), reason: "sealed for another purpose" },
  { token: sealElsewhere("arbor page token 1", older), reason: "sealed with a key other than it says" },
  { token: bytes.subarray(0, 8).toString("base64url"), reason: "a key's id and nothing more" },
];

for (const { token: forged, reason } of forgeries) {
  test(`rejected: ${reason}`, async () => {
    await assert.rejects(read(forged, binding, nowMs), isInvalidPageToken(FORGED));
  });
}

test("the standard alphabet of base64 is rejected", async () => {
  let plain = token;
  // Most tokens hold a character that differs; one that does is found at once.
  while (!/[-_]/.test(plain)) plain = tokens.create(cursor, binding, nowMs);
  const other = plain.replaceAll("-", "+").replaceAll("_", "/");
  await assert.rejects(read(other, binding, nowMs), isInvalidPageToken(FORGED));
});

test("every bit of every byte is guarded", async () => {
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    await assert.rejects(read(changed.toString("base64url"), binding, nowMs), isInvalidPageToken(FORGED), `bit ${bit}`);
  }
});

test("every character has one spelling", async () => {
  for (let i = 0; i < token.length; i++) {
    for (const other of ["A", "z", "_", "=", "+", " "]) {
      if (token[i] === other) continue;
      const changed = token.slice(0, i) + other + token.slice(i + 1);
      await assert.rejects(read(changed, binding, nowMs), isInvalidPageToken(FORGED), `character ${i} as ${other}`);
    }
  }
});

test("property: any cursor comes back as it was", async () => {
  const cursors = fc.record(
    {
      key: fc.oneof(fc.string({ unit: "grapheme", maxLength: 300 }), fc.maxSafeNat()),
      uid: fc.string({ maxLength: 300 }),
      skip: fc.nat(),
    },
    { noNullPrototype: true },
  );
  await fc.assert(
    fc.asyncProperty(cursors, fc.string(), fc.nat(), async (one, list, ageMs) => {
      const made = tokens.create(one, list, nowMs);
      assert.deepEqual(await read(made, list, nowMs + Math.min(ageMs, PAGE_TOKEN_LIFE_MS)), one);
    }),
  );
});
