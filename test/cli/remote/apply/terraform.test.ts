// Texts in the files of Terraform.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { quote } from "../../../../src/cli/remote/apply/terraform.js";

describe("a text of HCL", () => {
  for (const [text, expected] of [
    ["plain", '"plain"'],
    ['a "b" \\ c', '"a \\"b\\" \\\\ c"'],
    [`$\{var.x} %{if y}`, `"$$\{var.x} %%{if y}"`],
    ["100% $5 {x}", '"100% $5 {x}"'],
    ["a\nb\r\tc", '"a\\nb\\r\\tc"'],
    ["\u0000\u001b\u007f", '"\\u0000\\u001b\\u007f"'],
    ["ü 🦉", '"ü 🦉"'],
  ] as const) {
    it(JSON.stringify(text), () => assert.equal(quote(text), expected));
  }
});
