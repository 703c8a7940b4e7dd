// What a command prints of an error, and its exit code.
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { Code, CommandError, reportError } from "../../src/cli/errors.js";
import { invalidArgument } from "../../src/kernel/errors.js";

describe("a fault of the program is printed with its stack, and ends with 70", () => {
  for (const [name, fail] of [
    ["a name that nothing has", () => new Function("return isContact")()],
    ["a property of nothing", () => (undefined as unknown as { name: string }).name],
    ["a value out of range", () => new Array(-1)],
    ["text that is no JSON", () => JSON.parse("{")],
  ] as const) {
    it(name, (context) => {
      const error = catchError(fail);
      const { code, printed } = report(context, error);
      assert.equal(code, 70);
      assert.ok(printed.startsWith(`arbor: a fault of the program: ${error.name}: ${error.message}\n    at `), printed);
      assert.match(printed, /errors\.test\.[jt]s:\d+/);
    });
  }

  it("without control characters", (context) => {
    const { printed } = report(context, new TypeError("\u001b[2J"));
    assert.equal(printed.includes("\u001b"), false);
  });
});

describe("an error of a user is one line", () => {
  for (const [name, error, expected] of [
    ["a command's own", new CommandError(Code.NotFound, "there is none"), 5],
    ["the API's", invalidArgument({ field: "name", rule: "must be short" }), 2],
    ["a file that cannot be read", new Error("cannot read x: no such file"), 1],
  ] as const) {
    it(name, (context) => {
      assert.deepEqual(report(context, error), { code: expected, printed: `arbor: ${error.message}\n` });
    });
  }
});

function catchError(fail: () => unknown): Error {
  try {
    fail();
  } catch (error) {
    return error as Error;
  }
  throw new assert.AssertionError({ message: "nothing was thrown" });
}

function report({ mock }: TestContext, error: unknown) {
  const write = mock.method(process.stderr, "write", () => true);
  try {
    const code = reportError(error);
    return { code, printed: write.mock.calls.map(({ arguments: [text] }) => String(text)).join("") };
  } finally {
    write.mock.restore();
  }
}
