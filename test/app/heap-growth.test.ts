import assert from "node:assert/strict";
import { it } from "node:test";
import { execFileSync } from "../support/child-process.js";
import { scriptArguments } from "../support/project.js";

it("keeps the heap smaller over the same garbage than V8 does by itself", () => {
  const [limited, control] = [peakOf("limited"), peakOf("as it is")];
  assert.ok(limited < 0.85 * control, `${limited} bytes at most, ${control} without the limit`);
});

function peakOf(heap: "limited" | "as it is"): number {
  const args = [...scriptArguments("test/app/make-garbage.ts"), heap];
  return Number(execFileSync(process.execPath, args, { encoding: "utf8" }));
}
