// The kinds of settings that the values of config.test.ts do not cover.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { resolveWithSources } from "../../src/config/config.js";
import { buildSchema, describeFlags } from "../../src/config/describe.js";
import {
  duration,
  flag,
  integer,
  listenAddress,
  networks,
  oneOf,
  origins,
  size,
} from "../../src/config/setting-types.js";

const row = { help: "what it is", since: "0.6.0" };

test("a word with a switch: the flag alone, a word, and the form that turns it off", () => {
  const words = oneOf(["errors", "all", "off"], {
    ...row,
    aliases: { true: "all", false: "off" },
    isSwitch: true,
    default: "errors",
  });
  const table = { detail: words };
  const values = (given: string | boolean) => resolveWithSources({ flags: { detail: given }, env: {} }, table).settings;
  const parse = (given: string) => words.parse(given);
  assert.deepEqual([parse("true"), parse("false"), parse("errors"), parse("all")], ["all", "off", "errors", "all"]);
  for (const wrong of ["True", "none", "toString", "__proto__"])
    assert.throws(() => parse(wrong), /must be one of errors/);
  assert.throws(() => values("none"), /--detail must be one of errors, all, off/);
  assert.deepEqual(
    describeFlags("detail", table).map(({ flags }) => flags),
    ["--detail [errors|all|off]", "--no-detail"],
  );
  assert.equal(describeFlags("detail", table)[1]?.help, "the opposite of --detail");
  const validate = new Ajv2020().compile(buildSchema(table));
  for (const right of ["errors", "all", "off", "true", "false", true, false]) assert.ok(validate({ detail: right }));
  for (const wrong of ["none", 1]) assert.equal(validate({ detail: wrong }), false);
});

test("a whole number", () => {
  const count = integer({ ...row, placeholder: "count", min: 1, max: 2_000 });
  assert.deepEqual([count.parse("1"), count.parse("2000")], [1, 2_000]);
  for (const wrong of ["0", "2001", "-1", "1.5", "1e3", "0x10", " 1", "", "1".repeat(16)]) {
    assert.throws(() => count.parse(wrong), { message: "must be a whole number: 1 to 2000" });
  }
  assert.equal(count.fallback, undefined);
  const validate = new Ajv2020({ allowUnionTypes: true }).compile(buildSchema({ count }));
  assert.deepEqual([validate({ count: 5 }), validate({ count: "5" }), validate({ count: 0 })], [true, true, false]);
});

test("values are formatted as they are read", () => {
  const life = duration({ ...row, min: "1s", max: "9999d" });
  for (const given of ["1s", "59s", "90s", "1m", "36h", "7d", "9999d"])
    assert.equal(life.format(life.parse(given)), given);
  assert.equal(life.format(life.parse("120m")), "2h");
  const space = size({ ...row, min: "1KiB", max: "9GiB" });
  for (const given of ["1KiB", "1536KiB", "3MiB", "9GiB"]) assert.equal(space.format(space.parse(given)), given);
  const listen = listenAddress(row);
  for (const given of ["[::1]:80", "127.0.0.1:0"]) assert.equal(listen.format(listen.parse(given)), given);
  const list = networks(row);
  assert.equal(list.format(list.parse("10.0.0.0/8, ::1,192.0.2.7")), "10.0.0.0/8,::1/128,192.0.2.7/32");
  const several = origins({ ...row, star: true, default: "" });
  assert.deepEqual(
    [several.format(several.parse("https://a, https://b/")), several.fallback],
    ["https://a,https://b", []],
  );
});

test("a switch that is on has a form that turns it off, and one that is off has none", () => {
  const flagsOf = (fallback: "true" | "false") =>
    describeFlags("one", { one: flag({ ...row, default: fallback }) }).map(({ flags }) => flags);
  assert.deepEqual(flagsOf("true"), ["--one", "--no-one"]);
  assert.deepEqual(flagsOf("false"), ["--one"]);
});
