// Random filters and patches on random people, by the service and by a naive interpreter. A run prints its seed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ScimError } from "../../../src/scim/protocol/error.js";
import { parseFilter } from "../../../src/scim/protocol/filter.js";
import { readResource } from "../../../src/scim/protocol/input.js";
import { matches } from "../../../src/scim/protocol/match.js";
import { applyPatch, readPatch } from "../../../src/scim/protocol/patch.js";
import { userType } from "../../../src/scim/protocol/schemas.js";
import { createRandom } from "../../support/openapi/random.js";
import { chooseScale } from "../../support/scale.js";
import { isWrong, type Json, KINDS } from "./model.js";
import { Requests } from "./random-requests.js";
import { Fault, holds, patch } from "./reference.js";

const SEED = Number(process.env.TEST_ARBOR_SCIM_SEED ?? 20_261_128);
const ROUNDS = chooseScale(100_000, 2_000);

interface Difference {
  readonly seed: number;
  readonly request: string;
  readonly person: Json;
  readonly service: unknown;
  readonly reference: unknown;
}

/** Counts of results, and the first differences. */
interface Comparison {
  readonly counts: Map<string, number>;
  readonly differences: Difference[];
}

interface Engines {
  readonly matches: typeof matches;
  readonly applyPatch: typeof applyPatch;
}

/** Compares a filter and a patch a round. Each round has a seed of its own. */
function compare(rounds: number, engines: Engines): Comparison {
  const counts = new Map<string, number>();
  const differences: Difference[] = [];
  const note = (kind: string, difference: Difference) => {
    const { service, reference } = difference;
    const result = typeof reference === "object" ? "changed" : String(reference);
    counts.set(`${kind} ${result}`, (counts.get(`${kind} ${result}`) ?? 0) + 1);
    try {
      assert.deepStrictEqual(service, reference);
    } catch {
      differences.push(difference);
    }
  };
  for (let seed = SEED; seed < SEED + rounds && differences.length < 5; seed++) {
    const requests = new Requests(createRandom(seed));
    const person = requests.person();
    const whole = { ...person, ...requests.common() };
    const model = requests.filter(4);
    const filter = requests.write(model);
    note("filter", {
      seed,
      person: whole,
      request: filter,
      service: attempt(() => engines.matches(parseFilter(filter, userType), whole, userType)),
      reference: isWrong(model) ? "invalidFilter" : holds(model, whole, KINDS),
    });
    const steps = requests.steps();
    const body = requests.body(steps);
    const before = JSON.stringify([person, body]);
    note("patch", {
      seed,
      person,
      request: JSON.stringify(body),
      service: attempt(() => engines.applyPatch(person, readPatch(body, userType), userType)),
      reference: attempt(() => patch(person, steps.flat())),
    });
    assert.equal(JSON.stringify([person, body]), before, `seed ${seed}: the input has changed`);
  }
  return { counts, differences };
}

function attempt(compute: () => unknown): unknown {
  try {
    return compute();
  } catch (error) {
    if (error instanceof ScimError) return error.scimType;
    if (error instanceof Fault) return error.message;
    throw error;
  }
}

test("filters and patches do what a naive interpreter does", () => {
  const { counts, differences } = compare(ROUNDS, { matches, applyPatch });
  console.log(`seed ${SEED}: ${ROUNDS} rounds, ${JSON.stringify(Object.fromEntries([...counts].sort()))}`);
  assert.deepEqual(differences, []);
  // Each result comes up, so that each is compared.
  const results = ["filter true", "filter false", "filter invalidFilter", "patch changed"];
  const errors = ["invalidFilter", "invalidPath", "invalidValue", "mutability", "noTarget"];
  for (const result of [...results, ...errors.map((error) => `patch ${error}`)]) {
    assert.ok((counts.get(result) ?? 0) > ROUNDS / 200, result);
  }
});

test("random people are stored as they are", () => {
  for (let seed = 0; seed < 200; seed++) {
    const person = new Requests(createRandom(seed)).person();
    assert.deepStrictEqual(readResource(person, userType), person);
  }
});

test("the comparison finds planted faults", () => {
  const faults: Record<string, Partial<Engines>> = {
    "a filter that is true of what has no value": {
      matches: (filter, resource, type) =>
        matches(filter, resource, type) || (filter.op === "eq" && resource.title === undefined && "value" in filter),
    },
    "a patch that ignores its last operation": {
      applyPatch: (resource, operations, type) => applyPatch(resource, operations.slice(0, -1), type),
    },
    "a second primary value": {
      applyPatch: (resource, operations, type) => {
        const result = structuredClone(applyPatch(resource, operations, type)) as Record<string, Json[] | undefined>;
        for (const email of result.emails ?? []) if (email.primary === false) email.primary = true;
        return result;
      },
    },
  };
  for (const [fault, engines] of Object.entries(faults)) {
    assert.ok(compare(500, { matches, applyPatch, ...engines }).differences.length > 0, fault);
  }
});
