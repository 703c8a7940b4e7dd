// How values are converted for a copy.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  assertStorableInPg,
  readPgRow,
  readSqliteRow,
  type SqliteValue,
  toSqliteRow,
} from "../../../src/store/copy/cells.js";
import type { CellType, CopiedTable } from "../../../src/store/copy/tables.js";

function tableOf(type: CellType): CopiedTable {
  const key = { name: "uid", type: "text" } as const;
  return { name: "things", columns: [key, { name: "value", type }], key: [key], numbered: undefined, slots: undefined };
}

const cases: readonly {
  readonly type: CellType;
  readonly sqlite: SqliteValue;
  readonly pg: string;
  readonly cell: string;
}[] = [
  { type: "text", sqlite: "a'\\\"🌳", pg: "a'\\\"🌳", cell: "a'\\\"🌳" },
  { type: "integer", sqlite: 9_223_372_036_854_775_807n, pg: "9223372036854775807", cell: "9223372036854775807" },
  { type: "integer", sqlite: -9_007_199_254_740_993n, pg: "-9007199254740993", cell: "-9007199254740993" },
  { type: "boolean", sqlite: 1n, pg: "t", cell: "true" },
  { type: "boolean", sqlite: 0n, pg: "f", cell: "false" },
  { type: "bytes", sqlite: Buffer.from("00ff5c27", "hex"), pg: "\\x00ff5c27", cell: "00ff5c27" },
  { type: "bytes", sqlite: Buffer.alloc(0), pg: "\\x", cell: "" },
  {
    type: "json",
    sqlite: '{"b":[1,{"z":1e3,"aa":"\\u00e9"}],"a":null}',
    pg: '{"a": null, "b": [1, {"z": 1000, "aa": "é"}]}',
    cell: '{"a":null,"b":[1,{"aa":"é","z":1000}]}',
  },
  {
    type: "json",
    sqlite: '{"10":1,"9":2,"__proto__":3}',
    pg: '{"9": 2, "10": 1, "__proto__": 3}',
    cell: '{"9":2,"10":1,"__proto__":3}',
  },
];

describe("the cells of a copy", () => {
  for (const { type, sqlite, pg, cell } of cases) {
    it(`are the same for both databases: ${type} ${cell}`, () => {
      const table = tableOf(type);
      const row = ["u", cell];
      assert.deepEqual(readSqliteRow(table, ["u", sqlite]), row);
      assert.deepEqual(readPgRow(table, ["u", pg]), row);
      assert.deepEqual(readSqliteRow(table, toSqliteRow(table, row)), row);
      assert.deepEqual(readSqliteRow(table, ["u", null]), ["u", null]);
      assert.deepEqual(toSqliteRow(table, ["u", null]), ["u", null]);
    });
  }

  it("name the row and the column of a value that the column cannot have", () => {
    assert.throws(
      () => readSqliteRow(tableOf("boolean"), ["u1", 2n]),
      /^Error: table things, row u1, column value: 2 is/,
    );
    assert.throws(() => readSqliteRow(tableOf("json"), ["u1", "{"]), /^Error: table things, row u1, column value: /);
  });

  for (const [type, bad, good] of [
    ["text", "a\0b", "a\\u0000b"],
    ["json", '{"a":"\\u0000"}', '{"a":"\\\\u0000"}'],
    ["json", '["\\\\\\ud800"]', '["\\u001f\\\\ud800"]'],
  ] as const) {
    it(`are rejected where PostgreSQL cannot store them: ${type} ${JSON.stringify(bad)}`, () => {
      const table = tableOf(type);
      assert.throws(
        () => assertStorableInPg(table, ["u1", bad]),
        /table things, row u1, column value: PostgreSQL cannot/,
      );
      assertStorableInPg(table, ["u1", good]);
    });
  }
});
