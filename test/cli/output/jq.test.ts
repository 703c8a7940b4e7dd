// `--jq`: what expressions make of the JSON of commands, and which expressions are none.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CommandError } from "../../../src/cli/errors.js";
import { createJqFilter } from "../../../src/cli/output/jq.js";
import { runCommand } from "../../support/command.js";

async function apply(expression: string, texts: readonly string[], isPerText = false): Promise<string> {
  let written = "";
  const filter = await createJqFilter(expression, isPerText, async (text) => {
    written += text;
  });
  for (const text of texts) await filter.write(text);
  await filter.end();
  return written;
}

const rule = (text: string) => (error: unknown) =>
  error instanceof CommandError &&
  error.code === 3 &&
  error.message.startsWith("--jq: ") &&
  error.message.includes(text);

describe("an expression", () => {
  const list = ['{"groups":[', '{"name":"a","uid":"1"}', ',{"name":"b\\u001b\\tc","uid":"2"}', '],"totalCount":"2"}\n'];
  for (const [expression, printed] of [
    [".groups[].name", "a\nb\\u001b\tc\n"],
    [".groups | length", "2\n"],
    [".groups[0]", '{"name":"a","uid":"1"}\n'],
    ['.groups[] | select(.uid == "2") | [.uid, .name] | @csv', '"2","b\\u001b\tc"\n'],
    ['""', "\n"],
    ["empty", ""],
    [". as $all | .totalCount # the last word", "2\n"],
    ["-1", "-1\n"],
  ] as const) {
    it(`${expression} gets the whole list`, async () => assert.equal(await apply(expression, list), printed));
  }

  it("gets line by line with -o jsonl", async () => {
    assert.equal(await apply(".n", ['{"n":1}\n{"n":2}\n', '{"n":3}\n'], true), "1\n2\n3\n");
  });

  it("keeps the digits of numbers", async () =>
    assert.equal(await apply(".", ["12345678901234567890"]), "12345678901234567890\n"));

  for (const [expression, text] of [
    [".a | foo", "foo/0 is not defined at <top-level>, line 1, column 6"],
    ["{", "syntax error"],
    ["", "Top-level program not given"],
    ["--version", "version/0 is not defined"],
    ['include "x"; .', "module not found"],
  ] as const) {
    it(`is not ${JSON.stringify(expression)}, which is rejected before anything is done`, async () => {
      await assert.rejects(
        createJqFilter(expression, false, async () => assert.fail()),
        rule(text),
      );
    });
  }

  it("that fails says why, after what it printed before", async () => {
    let written = "";
    const filter = await createJqFilter(".a, .a.b", false, async (text) => {
      written += text;
    });
    await filter.write('{"a":1}');
    await assert.rejects(filter.end(), rule('Cannot index number with string ("b")'));
    assert.equal(written, "1\n");
  });

  it("gets a bounded amount of JSON at once, and any amount line by line", async () => {
    const text = `"${"x".repeat(1_000_000)}"\n`;
    const texts = Array(40).fill(text) as readonly string[];
    await assert.rejects(apply("length", texts), rule("at most 32 MiB"));
    assert.equal(await apply("length", texts.slice(0, 2), true), "1000000\n1000000\n");
  });
});

describe("--jq", () => {
  it("makes the output JSON, and goes with no other format", async () => {
    const list = ["api", "list", "ping.v2.Ping"];
    assert.equal(
      (await runCommand([...list, "-q", ".methods[].method"])).stdout,
      "chainguard.platform.ping.v2.PingService/Ping\n",
    );
    assert.equal((await runCommand([...list, "-o", "jsonl", "--jq", ".command"])).stdout, "\n");
    for (const [args, text] of [
      [["-o", "table", "--jq", "."], "--jq: goes with -o json and -o jsonl, not with -o table"],
      [["--jq", "foo"], "--jq: foo/0 is not defined"],
      [["--jq", ".methods.a"], "--jq: Cannot index array"],
    ] as const) {
      const { code, stdout, stderr } = await runCommand([...list, ...args]);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.ok(stderr.startsWith(`arbor: ${text}`), stderr);
    }
  });
});
