// Random values of the schemas of an OpenAPI document.
import type { AnyObject, ApiDocument } from "./document.js";
import { atRef } from "./document.js";
import type { Random } from "./random.js";

/** Gives a value for a property or parameter of this name in place of a random one; undefined for no opinion. */
export type Hint = (name: string) => unknown;

const WORDS = "abcdefghijklmnopqrstuvwxyz0123456789 ._-";
const DEPTH = 4;

/** Makes a value that `schema` admits. */
export function valueFor(
  schema: AnyObject,
  document: ApiDocument,
  random: Random,
  hint: Hint = () => undefined,
  depth = 0,
): unknown {
  const { $ref, anyOf, oneOf, type } = schema as {
    $ref?: string;
    anyOf?: AnyObject[];
    oneOf?: AnyObject[];
    type?: string | string[];
  };
  if ($ref !== undefined) return valueFor(atRef(document, $ref) as AnyObject, document, random, hint, depth);
  const choices = anyOf ?? oneOf;
  if (choices !== undefined) return valueFor(random.pick(choices), document, random, hint, depth);
  if (Array.isArray(type)) return valueFor({ ...schema, type: random.pick(type) }, document, random, hint, depth);
  if (Array.isArray(schema.enum)) return random.pick(schema.enum as unknown[]);
  if ("const" in schema) return schema.const;
  switch (type) {
    case "string":
      return textFor(schema, random);
    case "integer":
      return integerFor(schema, random);
    case "number":
      return random.pick([0, -1.5, 3.25, 1e21, 2 ** -20]);
    case "boolean":
      return random.chance(0.5);
    case "null":
      return null;
    case "array": {
      if (depth >= DEPTH) return [];
      const length = random.int(3);
      return Array.from({ length }, () => valueFor(itemsOf(schema), document, random, hint, depth + 1));
    }
    case "object":
      return objectFor(schema, document, random, hint, depth);
    default:
      return random.pick<unknown>(["text", 1, true, null, [1, "a"], { a: { b: [] } }]);
  }
}

function objectFor(schema: AnyObject, document: ApiDocument, random: Random, hint: Hint, depth: number): AnyObject {
  const made: Record<string, unknown> = {};
  const required = (schema.required ?? []) as readonly string[];
  for (const [name, property] of Object.entries((schema.properties ?? {}) as Record<string, AnyObject>)) {
    if (!required.includes(name) && (depth >= DEPTH || random.chance(0.5))) continue;
    made[name] = hint(name) ?? valueFor(property, document, random, hint, depth + 1);
  }
  const more = schema.additionalProperties;
  if (typeof more === "object" && more !== null && depth < DEPTH) {
    const { enum: keys = ["1", "7"] } = (schema.propertyNames ?? {}) as { enum?: string[] };
    for (const key of keys.slice(random.int(3))) {
      made[key] = valueFor(more as AnyObject, document, random, hint, depth + 1);
    }
  }
  return made;
}

function itemsOf(schema: AnyObject): AnyObject {
  return (schema.items ?? {}) as AnyObject;
}

function textFor(schema: AnyObject, random: Random): string {
  switch (schema.format) {
    case "int64":
      return String(random.pick([0n, -1n, 7n, 2n ** 53n + 1n, 2n ** 63n - 1n, -(2n ** 63n)]));
    case "uint64":
      return String(random.pick([0n, 7n, 2n ** 53n + 1n, 2n ** 64n - 1n]));
    case "date-time":
      return random.pick(["2026-01-31T12:00:00.000Z", "1969-12-31T23:59:59.999Z", "2000-02-29T00:00:00+02:00"]);
  }
  if (schema.contentEncoding === "base64") return random.pick(["", "YQ==", "YWI=", "YWJj", "_-8"]);
  if (String(schema.pattern ?? "").endsWith("s$")) return random.pick(["0s", "1.5s", "-3.000000001s"]);
  if (String(schema.pattern ?? "").includes(",*")) return random.pick(["", "name", "name,description", "*"]);
  return random.text(WORDS, 12, Number(schema.minLength ?? 0));
}

function integerFor(schema: AnyObject, random: Random): number {
  const least = Number(schema.minimum ?? -(2 ** 31));
  const most = Number(schema.maximum ?? 2 ** 31 - 1);
  return random.pick([0, 1, 7, 100, least, most].filter((value) => value >= least && value <= most));
}
