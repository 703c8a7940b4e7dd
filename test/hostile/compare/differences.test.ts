import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonValue } from "@bufbuild/protobuf";
import { createCompare } from "./differences.js";
import type { WireRequest } from "./exchange.js";
import { formatReport, readExpectations } from "./report.js";
import type { Row } from "./run.js";

const UIDS = ["1".repeat(40), "2".repeat(40), "3".repeat(40)] as const;
const compareOnce = (a: JsonValue, b: JsonValue) => createCompare({ a: ["127.0.0.1:1"], b: ["127.0.0.1:2"] })(a, b);

describe("responses are the same", () => {
  const pairs: readonly (readonly [why: string, a: JsonValue, b: JsonValue])[] = [
    ["in any order of fields", { a: 1, b: 2 }, { b: 2, a: 1 }],
    [
      "with uids of their own",
      { uid: UIDS[0], of: `${UIDS[0]}/${"4".repeat(16)}` },
      { uid: UIDS[1], of: `${UIDS[1]}/${"5".repeat(16)}` },
    ],
    ["at other times", { time: "2026-01-02T03:04:05.678Z" }, { time: "2027-12-31T23:59:59.999Z" }],
    ["at their own addresses", "see http://127.0.0.1:1/docs", "see http://127.0.0.1:2/docs"],
    ["with page tokens of their own", "aB3".repeat(10), "cD4".repeat(10)],
    ["whenever they may be sent again", { "retry-after": "30" }, { "retry-after": "29" }],
  ];
  for (const [why, a, b] of pairs) test(why, () => assert.deepEqual(compareOnce(a, b), []));
});

describe("responses differ", () => {
  const pairs: readonly (readonly [why: string, a: JsonValue, b: JsonValue, path: string])[] = [
    ["in a number", { status: 400 }, { status: 401 }, "status"],
    ["in a text", { fields: { "content-type": "a/b" } }, { fields: { "content-type": "a/c" } }, "fields.content-type"],
    ["in a field that one lacks", { fields: { "retry-after": "1" } }, { fields: {} }, "fields.retry-after"],
    ["in the length of a list", { details: [1] }, { details: [1, 2] }, "details.length"],
    ["in the order of a list", ["a", "b"], ["b", "a"], "[]"],
    ["in what a uid stands for", [UIDS[0], UIDS[0]], [UIDS[1], UIDS[2]], "[]"],
    ["in two uids that are one on the other side", [UIDS[0], UIDS[1]], [UIDS[2], UIDS[2]], "[]"],
    ["in the size of a limit", "at most 262144 bytes", "at most 262149 bytes", ""],
    ["in the length of a token", "aB3".repeat(10), "aB3".repeat(11), ""],
  ];
  for (const [why, a, b, path] of pairs) test(why, () => assert.equal(compareOnce(a, b)[0]?.path, path));
});

describe("the report", () => {
  const request: WireRequest = { label: "", http: 1, method: "GET", path: "/", fields: [] };
  const row = (label: string, path: string): Row => ({
    ...{ label, count: 2, difference: { path, a: "1", b: "2" } },
    example: { where: "request 1", request, a: {}, b: {} },
  });
  const rows = [row("REST", "status"), row("gRPC", "status"), row("REST", "body")];
  const report = { requests: 9, seconds: 1, rows, counts: {}, skipped: [], faults: [] };

  test("has a row for each difference, whatever the protocol", () => {
    const { text, differences } = formatReport(report, []);
    assert.equal(differences, 2);
    assert.match(text, /× 4: status.*over REST × 2; gRPC × 2/s);
  });

  test("leaves out what is expected, and names what is not found", () => {
    const expected = '[{"label":"^g","path":"status","reason":"one"},{"path":"nothing","reason":"two"}]';
    const { text, differences } = formatReport(report, readExpectations(expected));
    assert.equal(differences, 2);
    assert.match(text, /× 2: status.*over REST × 2\n/s);
    assert.match(text, /expected × 2: one\nexpected × 0: two \(not found/);
  });

  test("needs a reason and a pattern", () => {
    for (const entry of ['[{"path":"a"}]', '[{"reason":"a"}]'])
      assert.throws(() => readExpectations(entry), /needs a reason and one of label, path, a, b/);
  });
});
