// Random templates and paths: what is built of values comes back as those values, and the route table agrees with a
// model of the grammar. `npm run campaign -- long tests` runs 100,000 of each.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseTemplate } from "../../../src/transport/http/http-rule.js";
import { createRouteTable } from "../../../src/transport/rest/route-table.js";
import { chooseScale } from "../../support/scale.js";
import {
  anyTemplate,
  compareTemplates,
  type ModelTemplate,
  modelMatch,
  type Part,
  segmentsOf,
  spanOf,
  templateText,
} from "../../support/template-model.js";

const SEED = 16;
const RUNS = chooseScale(100_000, 1_000);
const options = { seed: SEED, numRuns: RUNS };

const tableOf = (templates: readonly ModelTemplate[]) =>
  createRouteTable(
    templates.map((model) => {
      const text = templateText(model);
      return { method: "GET", template: parseTemplate(text, "t"), name: text, target: model };
    }),
  );

// Characters that mean something to paths, templates, queries or escapes, and some that do not.
const char = fc.constantFrom(..."aZ09-_.~!$&'()*+,;=:@/%?#[]{}|\\\"<>^` äß€😀", "%2F", "%2f", "%3A", "+");
const notDots = (text: string) => text.split("/").every((part) => part !== "." && part !== "..");
const text = fc
  .array(char, { minLength: 1, maxLength: 8 })
  .map((chars) => chars.join(""))
  .filter(notDots);
const segment = text.map((one) => one.replaceAll("/", "~"));
const manySegments = fc.array(segment.filter(notDots), { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"));

// Every character that a segment cannot hold is escaped, and of the others as `isEscaped` says.
function escapeValue(value: string, isEscaped: () => boolean, slash: "always" | "either"): string {
  return [...value]
    .map((one) => {
      if (one === "/") return slash === "either" && !isEscaped() ? "/" : "%2F";
      if (/[A-Za-z0-9._~!$&'()*+,;=:@-]/.test(one) && !isEscaped()) return one;
      return [...Buffer.from(one)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
    })
    .join("");
}

// The texts of the wildcards of an item, and what is captured.
const valuesOf = (parts: readonly Part[], span: "one" | "fixed" | "any"): fc.Arbitrary<string[]> =>
  fc.tuple(
    ...parts.map((part) => {
      if (part.kind === "literal") return fc.constant(part.text);
      if (part.kind === "star2") return manySegments;
      return span === "one" ? text : segment.filter(notDots);
    }),
  );

const request = anyTemplate
  .filter((template) => {
    // Of a variable with more than one segment a literal that holds a slash has no value of its own.
    return template.items.every((item) => !Array.isArray(item) || item.length === 1 || !slashes(item));
  })
  .chain((template) =>
    fc.record({
      template: fc.constant(template),
      values: fc.tuple(
        ...template.items.map((item) => {
          const parts = Array.isArray(item) ? (item as Part[]) : [item as Part];
          return valuesOf(parts, Array.isArray(item) ? spanOf(parts) : "one");
        }),
      ),
      flips: fc.infiniteStream(fc.boolean()),
    }),
  );

const slashes = (parts: readonly Part[]) => parts.some((part) => part.kind === "literal" && part.text.includes("/"));

test(`paths made of values give those values: seed ${SEED}, ${RUNS} runs`, () => {
  fc.assert(
    fc.property(request, ({ template, values, flips }) => {
      const flip = () => flips.next().value as boolean;
      const segments = template.items.flatMap((item, i) => {
        const parts = Array.isArray(item) ? (item as Part[]) : [item as Part];
        const deep = Array.isArray(item) && spanOf(parts) === "any";
        return parts.map((part, k) => {
          const value = values[i]?.[k] ?? "";
          return escapeValue(value, flip, deep && part.kind === "star2" ? "either" : "always");
        });
      });
      // A bare `**` was given its own slashes, escaped: one segment.
      const verb = template.verb === "" ? "" : `${flip() ? ":" : "%3A"}${escapeValue(template.verb, flip, "always")}`;
      const path = `/${segments.join("/")}${verb}`;
      const expected = template.items.flatMap((item, i) => (Array.isArray(item) ? [(values[i] ?? []).join("/")] : []));
      assert.deepEqual(tableOf([template]).find("GET", path)?.captures, expected, `${templateText(template)} ${path}`);
    }),
    options,
  );
});

// Of words that the templates have, so that many match.
const pathSegment = fc.constantFrom(
  ..."a b c a:b a%3Ab a%3ab:go a:go b:a:go a%3Aa%3Ago a:a b%3Aa = %3D * %2A ** %C3%A4 a%2Fb a%2fb %252F c%2Fd a.b :go %3Ago a:*= b:%2A%3d b:go%20on".split(
    " ",
  ),
);
const anyPath = fc.array(pathSegment, { maxLength: 6 }).map((parts) => `/${parts.join("/")}`);

test(`the table finds what the model finds: seed ${SEED}, ${RUNS} runs`, (t) => {
  let [found, contested, twins] = [0, 0, 0];
  fc.assert(
    fc.property(
      fc.array(anyTemplate, { minLength: 1, maxLength: 5 }),
      fc.array(anyPath, { minLength: 1, maxLength: 8 }),
      (templates, paths) => {
        const shapes = templates.map((one) => JSON.stringify([segmentsOf(one), one.verb]));
        if (new Set(shapes).size < shapes.length) {
          twins++;
          assert.throws(() => tableOf(templates), /match the same paths/);
          return;
        }
        const table = tableOf(templates);
        for (const path of paths) {
          const matches = templates.flatMap((template) => {
            const match = modelMatch(template, path);
            return match === undefined ? [] : [{ target: template, captures: match.captures }];
          });
          const [best] = matches.sort((a, b) => compareTemplates(a.target, b.target));
          if (best !== undefined) found++;
          if (matches.length > 1) contested++;
          assert.deepEqual(table.find("GET", path), best, `${path} among ${templates.map(templateText).join(" ")}`);
        }
      },
    ),
    options,
  );
  t.diagnostic(`${found} paths found, ${contested} of them by several routes, ${twins} tables with twins`);
  assert.ok(found > RUNS / 10 && contested > RUNS / 100 && twins > 0);
});
