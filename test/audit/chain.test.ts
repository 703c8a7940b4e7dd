import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test } from "node:test";
import { getTableColumns } from "drizzle-orm";
import {
  buildNextLink,
  CHAIN_START,
  formatCanonicalJson,
  formatLogName,
  isKnownVersion,
} from "../../src/audit/chain.js";
import { hashBody } from "../../src/kernel/audit-body.js";
import type { StoredAuditRow } from "../../src/store/tables/audit.js";
import { schema } from "../../src/store/tables/schema-sqlite.js";
import { buildStoredRow } from "./log-kit.js";

const row = buildStoredRow(7, "root", {
  version: 2,
  subjectUid: 'ü"\\\u0001\u2028🌳',
  actorName: "Ann 🌳",
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
});
const version1: StoredAuditRow = { ...row, version: 1, traceId: "", actorName: "" };
const version3: StoredAuditRow = { ...row, version: 3, bodyHash: hashBody("{}"), bodyBytes: 2 };

describe("the hash chain", () => {
  test("a row of version 1 is hashed in the form of RFC 8785, as before there was another version", () => {
    assert.equal(
      formatCanonicalJson(version1),
      '{"actorUid":"actor","id":7,"method":"/test.Things/Make","remoteAddress":"192.0.2.7","requestId":"request",' +
        '"rootUid":"root","subjectUid":"ü\\"\\\\\\u0001\u2028🌳","timeMs":1763675334123,"tokenId":"token",' +
        '"type":"test.thing.made.v1"}',
    );
  });

  test("a row of version 2 has its version, its trace and the actor's name besides", () => {
    assert.equal(
      formatCanonicalJson(row),
      '{"actorName":"Ann 🌳","actorUid":"actor","id":7,"method":"/test.Things/Make","remoteAddress":"192.0.2.7",' +
        '"requestId":"request","rootUid":"root","subjectUid":"ü\\"\\\\\\u0001\u2028🌳","timeMs":1763675334123,' +
        '"tokenId":"token","traceId":"4bf92f3577b34da6a3ce929d0e0e4736","type":"test.thing.made.v1","version":2}',
    );
  });

  test("a row of version 3 has the hash of its body besides, and no id", () => {
    assert.equal(
      formatCanonicalJson(version3),
      '{"actorName":"Ann 🌳","actorUid":"actor","bodyHash":"RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o",' +
        '"method":"/test.Things/Make","remoteAddress":"192.0.2.7","requestId":"request","rootUid":"root",' +
        '"subjectUid":"ü\\"\\\\\\u0001\u2028🌳","timeMs":1763675334123,"tokenId":"token",' +
        '"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","type":"test.thing.made.v1","version":3}',
    );
  });

  test("members are sorted by name, and include every column of the table but the body and the id", () => {
    const names = Object.keys(JSON.parse(formatCanonicalJson(version3)));
    const columns = Object.keys(getTableColumns(schema.audit)).sort();
    assert.deepEqual(
      names,
      columns.filter((name) => name !== "id" && name !== "body"),
    );
    const without = (...absent: string[]) => columns.filter((name) => !absent.includes(name));
    assert.deepEqual(Object.keys(JSON.parse(formatCanonicalJson(row))), without("body", "bodyHash"));
    assert.deepEqual(
      Object.keys(JSON.parse(formatCanonicalJson(version1))),
      without("body", "bodyHash", "actorName", "traceId", "version"),
    );
  });

  test("a row of an unknown version has no form", () => {
    assert.deepEqual(
      [0, 1, 2, 3, 4].map((version) => isKnownVersion({ ...row, version })),
      [false, true, true, true, false],
    );
    for (const version of [0, 4]) {
      const error = { name: "RangeError", message: `row 7 has the unknown version ${version}` };
      assert.throws(() => formatCanonicalJson({ ...row, version }), error);
    }
  });

  for (const one of [version1, row, version3]) {
    test(`version ${one.version}: the order in which a row names its fields is nothing to the hash`, () => {
      const reversed = Object.fromEntries(Object.entries(one).reverse()) as typeof one;
      assert.deepEqual(buildNextLink(CHAIN_START, reversed), buildNextLink(CHAIN_START, one));
    });
  }

  test("a link is the hash of the one before, the row and the number", () => {
    const first = buildNextLink(CHAIN_START, version1);
    assert.deepEqual(CHAIN_START, { seq: 0, hash: "A".repeat(43) });
    const hash = createHash("sha256").update(Buffer.alloc(32)).update(formatCanonicalJson(version1)).update("1");
    assert.deepEqual(first, { seq: 1, hash: hash.digest("base64url") });
    const second = createHash("sha256")
      .update(Buffer.from(first.hash, "base64url"))
      .update(formatCanonicalJson(row))
      .update("2");
    assert.deepEqual(buildNextLink(first, row), { seq: 2, hash: second.digest("base64url") });
  });

  test("what was computed once stays so", () => {
    assert.equal(buildNextLink(CHAIN_START, version1).hash, "zIqBVjtrFWChr9izYioQumCEVc5IrZ_OL8envABYhAA");
    assert.equal(buildNextLink(CHAIN_START, row).hash, "dZBHAlfL2Ve_B6QKTDfNTRpJIC5AxFyfetu5ca43UXo");
  });

  test("the log of no organisation has a name", () => {
    assert.deepEqual([formatLogName(""), formatLogName("abc")], ["(installation)", "abc"]);
  });
});
