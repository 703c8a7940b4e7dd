// Random pairs of routes: where the start lets a mounted route stand beside one of the platform, the route table finds
// that of the platform for every path it matches. `npm run campaign -- long tests` runs 100,000.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assertNothingShadowed } from "../../src/app/mounts.js";
import type { HttpBinding } from "../../src/transport/http/http-binding.js";
import { parseTemplate } from "../../src/transport/http/http-rule.js";
import { createRouteTable } from "../../src/transport/rest/route-table.js";
import { chooseScale } from "../support/scale.js";
import { anyTemplate, modelMatch, templateText } from "../support/template-model.js";

const SEED = 16;
const RUNS = chooseScale(100_000, 8_000);

const word = fc.constantFrom(..."a b c a:b a:go b:go a:a:go %3Aa a%3Ago = * **".split(" "));
const anyPath = fc.array(word, { minLength: 1, maxLength: 5 }).map((parts) => `/${parts.join("/")}`);
const anyMethod = fc.constantFrom("GET", "HEAD", "POST", "*");

test(`a mounted route takes nothing of the platform: seed ${SEED}, ${RUNS} runs`, () => {
  let [accepted, contested] = [0, 0];
  const property = fc.property(
    fc.tuple(anyTemplate, anyMethod),
    fc.tuple(anyTemplate, anyMethod),
    fc.array(anyPath, { minLength: 1, maxLength: 8 }),
    ([own, ownMethod], [mounted, mountedMethod], paths) => {
      const routes = [
        { method: ownMethod, template: parseTemplate(templateText(own), "own"), name: "own", entry: {} },
        {
          ...{ method: mountedMethod, template: parseTemplate(templateText(mounted), "mounted"), name: "mounted" },
          entry: { mounted: {} },
        },
      ];
      try {
        assertNothingShadowed(routes as unknown as HttpBinding[], []);
      } catch (error) {
        assert.match(String(error), /would take requests of/);
        return;
      }
      accepted++;
      const table = createRouteTable(routes.map((route) => ({ ...route, target: route.name })));
      for (const path of paths) {
        if (modelMatch(own, path) === undefined) continue;
        if (modelMatch(mounted, path) !== undefined) contested++;
        const names =
          ownMethod === "*" ? ["GET", "HEAD", "POST", "PUT"] : [ownMethod, ...(ownMethod === "GET" ? ["HEAD"] : [])];
        for (const name of names) {
          const found = table.find(name, path)?.target;
          assert.equal(found, "own", `${name} ${path}: ${templateText(own)} beside ${templateText(mounted)}`);
        }
      }
    },
  );
  fc.assert(property, { seed: SEED, numRuns: RUNS });
  assert.ok(accepted > RUNS / 10, `${accepted} accepted`);
  assert.ok(contested > RUNS / 200, `${contested} contested`);
});
