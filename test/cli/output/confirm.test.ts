import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { CommandError } from "../../../src/cli/errors.js";
import { confirmDelete } from "../../../src/cli/output/confirm.js";

function terminal(isTTY: boolean): PassThrough & { isTTY: boolean } {
  return Object.assign(new PassThrough(), { isTTY });
}

async function askToDelete(response: string | undefined): Promise<{ error: unknown; question: string }> {
  const [input, output] = [terminal(true), terminal(true)];
  if (response === undefined) input.end();
  else input.write(`${response}\n`);
  const error = await confirmDelete("group 01\u001b[2J", { input, output }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  output.end();
  return { error, question: await text(output) };
}

describe("the question before a deletion", () => {
  for (const response of ["y", "Y", "yes", " YES "]) {
    it(`is answered by "${response}"`, async () => {
      const { error, question } = await askToDelete(response);
      assert.equal(error, undefined);
      assert.equal(question, "Delete group 01\\u001b[2J? [y/N] ");
    });
  }

  for (const response of ["", "n", "no", "yup", undefined]) {
    it(`is denied by ${response === undefined ? "the end of input" : `"${response}"`}`, async () => {
      const { error } = await askToDelete(response);
      assert.ok(error instanceof Error && !(error instanceof CommandError));
      assert.equal(error.message, "nothing was deleted");
    });
  }

  for (const [input, output] of [
    [false, true],
    [true, false],
  ] as const) {
    it(`is not asked without a terminal (${input}, ${output})`, async () => {
      await assert.rejects(confirmDelete("x", { input: terminal(input), output: terminal(output) }), CommandError);
    });
  }
});
