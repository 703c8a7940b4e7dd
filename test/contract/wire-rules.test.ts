// What header fields and streams say, in every form of every protocol. The table is in rules/wire.ts, and says which rows the
// service does not keep yet.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { formName, knownDrift, wireRules } from "./rules/wire.js";
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

  it("names each drift by a row and forms that show it", () => {
    const known = cases.map(({ rule, name }) => `${rule.says}: ${name}`);
    const drifts = knownDrift.flatMap(({ says, in: names }) => names.map((name) => `${says}: ${name}`));
    assert.deepEqual(
      drifts.filter((drift, i) => !known.includes(drift) || drifts.indexOf(drift) !== i),
      [],
    );
  });

  for (const { rule, kind, form, name } of cases) {
    const drift = knownDrift.find((one) => one.says === rule.says && one.in.includes(name));
    if (drift === undefined) {
      it(`${rule.anchor}: ${rule.says} (${name})`, () => runWireRule(rule, kind, form, wire));
      continue;
    }
    it(`known drift: ${rule.says} (${name})`, async () => {
      const failure = await runWireRule(rule, kind, form, wire).catch((error: unknown) => error);
      assert.ok(failure !== undefined, "the service keeps this now: take it out of knownDrift");
      assert.match(String(failure), drift.instead);
    });
  }
});
