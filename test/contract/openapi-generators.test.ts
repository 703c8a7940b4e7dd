// What generators of clients need of the document besides its being valid. Each rule is one that a widely used generator
// breaks without: openapi-generator and openapi-python-client make classes of the schemas, openapi-typescript types.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Harness, startHarness } from "../support/harness.js";
import { type AnyObject, type ApiDocument, operationsOf, type PlacedOperation } from "../support/openapi/document.js";
import { readDocument } from "../support/openapi/request.js";

interface Placed {
  readonly at: string;
  readonly schema: AnyObject;
}

let harness: Harness;
let document: ApiDocument;
let operations: PlacedOperation[];
let schemas: Placed[];

before(async () => {
  harness = await startHarness();
  document = await readDocument(harness.url);
  operations = operationsOf(document);
  schemas = [
    ...Object.entries(document.components.schemas).flatMap(([name, schema]) => schemasIn(schema, name)),
    ...operations.flatMap(({ operationId, parameters, requestBody, responses }) => [
      ...parameters.flatMap(({ name, schema }) => schemasIn(schema, `${operationId}.${name}`)),
      ...[requestBody?.content, responses["200"]?.content]
        .flatMap((content) => Object.values(content ?? {}))
        .flatMap(({ schema }) => (schema === undefined ? [] : schemasIn(schema, operationId))),
    ]),
  ];
});

after(() => harness.stop());

// Values that clients turn into something else than a text, before they compare them with a pattern.
const CONVERTED: readonly unknown[] = ["date-time", "date", "time", "uuid", "byte", "binary"];

const rules: readonly { name: string; isBroken: (schema: AnyObject, at: string) => boolean }[] = [
  {
    name: "a value that clients convert has no pattern",
    isBroken: ({ format, pattern }) => pattern !== undefined && CONVERTED.includes(format),
  },
  {
    name: "an enum has texts alone, which differ in more than case",
    isBroken: ({ enum: values, type }) =>
      Array.isArray(values) &&
      (type !== "string" ||
        !values.every((value) => typeof value === "string") ||
        hasDuplicates(values.map((value) => normalize(String(value))))),
  },
  {
    name: "no schema asks for exactly one of several, which clients that look at required properties alone cannot tell",
    isBroken: ({ oneOf }) => oneOf !== undefined,
  },
  {
    name: "two types are a type and null, and never for a map",
    isBroken: ({ type, additionalProperties }) =>
      Array.isArray(type) && (type.length !== 2 || type[1] !== "null" || additionalProperties !== undefined),
  },
  {
    name: "alternatives are components, numbers, or null",
    isBroken: ({ anyOf }) =>
      ((anyOf ?? []) as AnyObject[]).some(
        ({ $ref, type, enum: names, additionalProperties }) =>
          $ref === undefined &&
          !["integer", "number", "null"].includes(String(type)) &&
          names === undefined &&
          additionalProperties === undefined,
      ),
  },
  {
    name: "an object has properties or is a map, not both, unless anything may be in it",
    isBroken: ({ properties, additionalProperties }) =>
      properties !== undefined && typeof additionalProperties === "object",
  },
  {
    name: "properties have different names in every language",
    isBroken: ({ properties }) => hasDuplicates(Object.keys((properties ?? {}) as AnyObject).map(normalize)),
  },
  {
    name: "a pattern needs nothing that regular expressions have in one language alone",
    isBroken: ({ pattern }) =>
      pattern !== undefined && (/\(\?[^:]|\\[^.]/.test(String(pattern)) || !compiles(String(pattern))),
  },
];

describe("the document, for generators", () => {
  for (const { name, isBroken } of rules) {
    it(name, () => {
      assert.ok(schemas.length > 1_000);
      const broken = schemas.filter(({ at, schema }) => isBroken(schema, at)).map(({ at }) => at);
      assert.deepEqual(broken, []);
    });
  }

  it("no two types get the same name, those made of a property included", () => {
    const named = schemas.filter(({ schema }) => isNamedType(schema)).map(({ at }) => at);
    assert.deepEqual(duplicates([...named, ...Object.keys(document.components.schemas)]), []);
  });

  it("operations are functions in every language, and parameters their arguments", () => {
    for (const { operationId, parameters, tags } of operations) {
      assert.match(operationId, /^[A-Za-z][A-Za-z0-9_]*$/);
      assert.ok(!hasDuplicates(parameters.map(({ name }) => normalize(name))), operationId);
      for (const tag of tags) assert.match(tag, /^[A-Za-z][A-Za-z0-9.]*$/);
      // What is not one value cannot be written into a path or query by its type alone.
      for (const { name, schema } of parameters) assert.equal(schema.anyOf, undefined, `${operationId}: ${name}`);
    }
    assert.ok(!hasDuplicates(operations.map(({ operationId }) => normalize(operationId))));
  });

  it("every variable of a path is a parameter", () => {
    for (const { path, parameters } of operations) {
      const names = parameters.filter((one) => one.in === "path" && one.required === true).map(({ name }) => name);
      assert.deepEqual([...path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name).sort(), names.sort());
    }
  });
});

// A schema and those inside it. What a stream holds is told to readers alone.
function schemasIn(schema: AnyObject, at: string): Placed[] {
  const { properties, items, additionalProperties, anyOf, oneOf, title } = schema as {
    properties?: Record<string, AnyObject>;
    items?: AnyObject;
    additionalProperties?: AnyObject | boolean;
    anyOf?: AnyObject[];
    oneOf?: AnyObject[];
    title?: string;
  };
  return [
    { at: title === undefined ? at : `${at.slice(0, at.lastIndexOf("."))}.${title}`, schema },
    ...Object.entries(properties ?? {}).flatMap(([name, property]) => schemasIn(property, `${at}.${name}`)),
    ...(items === undefined ? [] : schemasIn(items, `${at}.items`)),
    ...(typeof additionalProperties === "object" ? schemasIn(additionalProperties, `${at}.values`) : []),
    ...[...(anyOf ?? []), ...(oneOf ?? [])].flatMap((one, i) => schemasIn(one, `${at}.${i}`)),
  ];
}

// Whether generators make a type of a schema wherever it stands.
function isNamedType({ properties, additionalProperties, enum: values }: AnyObject): boolean {
  return properties !== undefined || additionalProperties !== undefined || values !== undefined;
}

const normalize = (name: string) => name.replace(/[^A-Za-z0-9]/g, "").toLowerCase();

const hasDuplicates = (names: readonly string[]) => new Set(names).size < names.length;

function duplicates(names: readonly string[]): string[] {
  const owners = new Map<string, Set<string>>();
  for (const name of names) owners.set(normalize(name), (owners.get(normalize(name)) ?? new Set()).add(name));
  return [...owners.values()].filter(({ size }) => size > 1).map((set) => [...set].join(" = "));
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, "u").source !== "";
  } catch {
    return false;
  }
}
