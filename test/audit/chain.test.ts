import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { getTableColumns } from "drizzle-orm";
import { buildNextLink, CHAIN_START, canonicalJson, formatLogName } from "../../src/audit/chain.js";
import { audit } from "../../src/store/schema-sqlite.js";
import { auditRow } from "./log-kit.js";

const row = { id: 7, ...auditRow("root", { subjectUid: 'ü"\\\u0001\u2028🌳' }) };

describe("the hash chain", () => {
  test("a row is hashed in the form of RFC 8785", () => {
    assert.equal(
      canonicalJson(row),
      '{"actorUid":"actor","id":7,"method":"/test.Things/Make","remoteAddress":"192.0.2.7","requestId":"request",' +
        '"rootUid":"root","subjectUid":"ü\\"\\\\\\u0001\u2028🌳","timeMs":1763675334123,"tokenId":"token",' +
        '"type":"test.thing.made.v1"}',
    );
  });

  test("members are sorted by name, and include every column of the table", () => {
    const names = Object.keys(JSON.parse(canonicalJson(row)));
    assert.deepEqual(names, Object.keys(getTableColumns(audit)).sort());
  });

  test("the order in which a row names its fields is nothing to the hash", () => {
    const reversed = Object.fromEntries(Object.entries(row).reverse()) as typeof row;
    assert.deepEqual(buildNextLink(CHAIN_START, reversed), buildNextLink(CHAIN_START, row));
  });

  test("a link is the hash of the one before, the row and the number", () => {
    const first = buildNextLink(CHAIN_START, row);
    assert.deepEqual(CHAIN_START, { seq: 0, hash: "A".repeat(43) });
    const hash = createHash("sha256").update(Buffer.alloc(32)).update(canonicalJson(row)).update("1");
    assert.deepEqual(first, { seq: 1, hash: hash.digest("base64url") });
    const second = createHash("sha256")
      .update(Buffer.from(first.hash, "base64url"))
      .update(canonicalJson(row))
      .update("2");
    assert.deepEqual(buildNextLink(first, row), { seq: 2, hash: second.digest("base64url") });
  });

  test("what was computed once stays so", () => {
    assert.equal(buildNextLink(CHAIN_START, row).hash, "zIqBVjtrFWChr9izYioQumCEVc5IrZ_OL8envABYhAA");
  });

  test("the log of no organisation has a name", () => {
    assert.deepEqual([formatLogName(""), formatLogName("abc")], ["(installation)", "abc"]);
  });
});
