// What header fields and streams say, in every form of every protocol. The table is in rules/wire.ts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { formName, wireRules } from "./rules/wire.js";
import { formsOf, runWireRule, startWireWorld, type WireWorld } from "./rules/wire-run.js";

let wire: WireWorld;
before(async () => {
  wire = await startWireWorld();
});
after(() => wire?.stop());

const cases = wireRules.flatMap((rule) =>
  rule.kinds.flatMap((kind) =>
    formsOf(rule, kind).map((form) => ({ rule, kind, form, name: `${formName(form)}, ${kind}` })),
  ),
);

describe("the table of header fields and streams", () => {
  it("belongs to headings of docs/api-rules.md", () => {
    const page = readFileSync("docs/api-rules.md", "utf8");
    const headings = [...page.matchAll(/^#{2,} (.+)$/gm)].map(([, title = ""]) =>
      title.toLowerCase().replaceAll(" ", "-"),
    );
    assert.deepEqual(
      wireRules.map(({ anchor }) => anchor).filter((anchor) => !headings.includes(anchor)),
      [],
    );
  });

  for (const { rule, kind, form, name } of cases)
    it(`${rule.anchor}: ${rule.says} (${name})`, () => runWireRule(rule, kind, form, wire));
});
