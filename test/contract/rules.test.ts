// Every statement of docs/api-rules.md by requests, over REST, gRPC and one of the other protocols in turn, in a campaign
// over all of them. The table is in rules/. `npm run test:python` sends the same calls by grpcio and curl.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { sample } from "../support/scale.js";
import { type RuleClient, ruleClients } from "./rules/clients.js";
import { rules } from "./rules/index.js";
import { protocolsOf, runRule } from "./rules/run.js";
import { type RulesWorld, startRulesWorld } from "./rules/world.js";

let world: RulesWorld;
let clients: readonly RuleClient[];

before(async () => {
  world = await startRulesWorld();
  clients = ruleClients(world.url);
});

after(async () => {
  for (const client of clients) client.close();
  await world.stop();
});

// The headings with text of their own: those that only hold others say nothing.
function anchorsOf(page: string): string[] {
  const prose = page.replace(/^```.*?^```/gms, "code");
  const headings = [...prose.matchAll(/^#{2,} (.+)\n+(?=(.))/gm)].filter(([, , next]) => next !== "#");
  return headings.map(([, title = ""]) =>
    title
      .toLowerCase()
      .replaceAll(" ", "-")
      .replace(/[^\w-]/g, ""),
  );
}

describe("the table of rules", () => {
  it("has rows for every heading of docs/api-rules.md, and for no other", () => {
    const anchors = anchorsOf(readFileSync("docs/api-rules.md", "utf8"));
    assert.ok(anchors.length >= 34, `${anchors.length} headings`);
    assert.deepEqual([...new Set(rules.map(({ anchor }) => anchor))].sort(), anchors.sort());
  });

  it("says nothing twice", () => {
    const all = rules.map(({ says }) => says);
    assert.deepEqual(
      all.filter((one, i) => all.indexOf(one) !== i),
      [],
    );
  });

  for (const [row, rule] of rules.entries()) {
    if ("shownBy" in rule) {
      it(`${rule.anchor}: ${rule.says} (${rule.shownBy})`, () => {
        assert.ok(existsSync(rule.shownBy), `no file ${rule.shownBy}`);
        const source = readFileSync(rule.shownBy, "utf8").replace(/\$\{[^}]*\}/g, "*");
        // The beginning of a title, or a text of its own where titles are made of texts.
        const isThere = [`("${rule.test}`, `(\`${rule.test}`, `"${rule.test}"`].some((text) => source.includes(text));
        assert.ok(isThere, `no test "${rule.test}"`);
      });
      continue;
    }
    it(`${rule.anchor}: ${rule.says}`, async () => {
      const [rest, grpc, ...others] = clients.filter(({ protocol }) => protocolsOf(rule).includes(protocol));
      for (const client of [rest, grpc, ...sample(others, row)]) if (client) await runRule(rule, client, world);
    });
  }
});
