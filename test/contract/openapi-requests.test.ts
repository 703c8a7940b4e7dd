// The schemas of requests say what the service does: of every accepted request each property and parameter is left out,
// set to null, or set to a value that is no uid, and the service must reject what the schema rejects. In turn, what the
// service rejects by the name of the property must be invalid by the schema.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescEnum } from "@bufbuild/protobuf";
import { isUidp } from "../../src/kernel/uidp.js";
import {
  type AnyObject,
  atRef,
  createValidators,
  type Parameter,
  type PlacedOperation,
  type Validate,
} from "../support/openapi/document.js";
import { queryPart, withQuery } from "../support/openapi/request.js";
import { isCampaign } from "../support/scale.js";
import { type Arranged, type OperationWorld, startOperationWorld } from "./operation-world.js";
import { findMethod, findUnservedStatus } from "./served.js";

const JSON_TYPE = "application/json";
const NO_UID = "no-uid";
// A rule about two fields is one that no schema says: either of them may be there.
const CONDITIONAL = /^\S+ is required unless |^\S+ must name another repo, |^set either \S+ or \S+$/;

type Path = readonly (string | number)[];
type Outcome = { readonly status: number; readonly text: string };

let world: OperationWorld;
let of: (schema: AnyObject) => Validate;
let error: Validate;

before(async () => {
  world = await startOperationWorld();
  ({ of, error } = createValidators(world.document));
});

after(() => world.stop());

describe("every operation of the document", () => {
  const seen = { required: 0, optional: 0, zeros: 0, uids: 0, numbers: 0 };

  it("rejects what its schema rejects, and nothing else by the name of a property", async (t) => {
    for (const operation of operations()) {
      await t.test(operation.operationId, async () => {
        await checkBody(operation);
        await checkParameters(operation);
      });
    }
    const { required, optional, zeros, uids, numbers } = seen;
    const isMuch = required >= 100 && optional >= 130 && zeros >= 90 && uids >= 200 && numbers >= 3;
    assert.ok(isMuch, JSON.stringify(seen));
  });

  it("has a pattern wherever an answer holds a uid", async (t) => {
    for (const operation of operations()) {
      await t.test(operation.operationId, async () => {
        const schema = operation.responses["200"]?.content?.[JSON_TYPE]?.schema;
        const request = await world.arrange(operation);
        const { status, text } = await world.send({ ...request, path: withEncodedUids(request.path) });
        assert.equal(status, 200, text);
        if (schema !== undefined) assert.deepEqual(findUidsWithoutPattern(JSON.parse(text), schema), []);
      });
    }
  });

  async function checkBody(operation: PlacedOperation): Promise<void> {
    const { body } = await world.arrange(operation);
    const content = operation.requestBody?.content[JSON_TYPE];
    if (body === undefined || content?.schema === undefined) return;
    const validate = of(content.schema);
    const absent = await sendChanged(operation, () => undefined);
    if (!isConditional(absent)) {
      assert.equal(absent.status !== 200, operation.requestBody?.required === true, `no body: ${absent.text}`);
    }
    if (Array.isArray(body)) {
      const { status, text } = await sendChanged(operation, () => []);
      assert.equal(status !== 200, validate([]) !== undefined, `an empty list: ${text}`);
    }
    for (const { path, value } of propertiesIn(body)) {
      const check = async (change: (parent: Record<string | number, unknown>, key: string | number) => void) => {
        const { outcome, changed } = await sendWith(operation, path, change);
        if (outcome === undefined) return undefined;
        const isValid = validate(changed) === undefined;
        const told = `${operation.operationId} ${JSON.stringify(changed)}: ${outcome.status} ${outcome.text}`;
        // An update may clear a message that has no field set.
        const mayPass = operation.method === "PATCH" && typeof value === "object";
        if (!isValid && !(mayPass && outcome.status === 200)) assertTyped(outcome, told);
        else assert.ok(!isNamed(outcome, path, value), told);
        return { isValid, told, ...outcome };
      };
      const without = await check((parent, key) => delete parent[key]);
      if (without !== undefined) seen[without.isValid ? "optional" : "required"]++;
      const empty = await check((parent, key) => {
        parent[key] = null;
      });
      // In an update null names a field to be cleared.
      if (operation.method !== "PATCH") assert.equal(empty?.status, without?.status, empty?.told);
      const zero = zeroOf(operation, value);
      if (without?.isValid === false && zero !== undefined) {
        const zeroed = await check((parent, key) => {
          parent[key] = zero;
        });
        assert.equal(zeroed?.isValid, false, `an empty ${path.join(".")} is as good as none: ${zeroed?.told}`);
        seen.zeros++;
      }
      if (typeof value === "string" && isUidp(value)) {
        const broken = await check((parent, key) => {
          parent[key] = NO_UID;
        });
        if (broken?.isValid === false) seen.uids++;
      }
      const number = enumNumber(operation, value);
      if (number !== undefined) {
        const numbered = await check((parent, key) => {
          parent[key] = number;
        });
        assert.equal(numbered?.status, 200, numbered?.told);
        seen.numbers++;
      }
    }
  }

  async function checkParameters(operation: PlacedOperation): Promise<void> {
    for (const one of operation.parameters) {
      if (one.in === "query" && one.required === true) {
        const { status, text } = await sendChanged(operation, undefined, (path) => withoutParameter(path, one));
        assertTyped({ status, text }, `without ${one.name}: ${status} ${text}`);
        seen.required++;
      }
      if (!patternsIn(one.schema).some(isUidPattern)) continue;
      const { path } = await world.arrange(operation);
      const changed =
        one.in === "path"
          ? otherInPath(operation, path, one)
          : withQuery(withoutParameter(path, one), [queryPart(one.name, NO_UID)]);
      const { status, text } = await sendChanged(operation, undefined, () => changed);
      assert.ok(status >= 400 && status < 500, `${one.name}=${NO_UID}: ${status} ${text}`);
      seen.uids++;
    }
    for (const one of operation.parameters) {
      if (one.in !== "query" || one.required === true) continue;
      const { status, text } = await sendChanged(operation, undefined, (path) => withoutParameter(path, one));
      assert.equal(status, 200, `without ${one.name}: ${text}`);
      break;
    }
  }
});

// The stable names of version 2 and former paths lead to the handlers of the beta.
function operations(): PlacedOperation[] {
  return world.operations.filter(
    (one) =>
      findUnservedStatus(one) === undefined &&
      (isCampaign || !(one.operationId.startsWith("v2_") || one.deprecated === true)),
  );
}

// An error of the caller, with its details.
function assertTyped({ status, text }: Outcome, told: string): void {
  assert.ok(status >= 400 && status < 500, told);
  assert.equal(error(JSON.parse(text)), undefined, told);
}

async function sendChanged(
  operation: PlacedOperation,
  body: ((body: unknown) => unknown) | undefined,
  path: (path: string) => string = (same) => same,
): Promise<Outcome> {
  const request: Arranged = await world.arrange(operation);
  return world.send({ ...request, path: path(request.path), ...(body && { body: body(request.body) }) });
}

// Undefined for an update of which nothing would be left in a message: that replaces the message by an empty one.
async function sendWith(
  operation: PlacedOperation,
  path: Path,
  change: (parent: Record<string | number, unknown>, key: string | number) => void,
): Promise<{ outcome: Outcome | undefined; changed: unknown }> {
  const request = await world.arrange(operation);
  const changed = structuredClone(request.body);
  const parent = path.slice(0, -1).reduce((at, key) => (at as AnyObject)[key], changed) as Record<string, unknown>;
  change(parent, path.at(-1) ?? "");
  const isEmptied = operation.method === "PATCH" && path.length > 1 && Object.keys(parent).length === 0;
  return { outcome: isEmptied ? undefined : await world.send({ ...request, body: changed }), changed };
}

// Every property at every depth, and every element that is a text.
function propertiesIn(value: unknown, path: Path = []): { path: Path; value: unknown }[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    const inside = propertiesIn(member, at);
    return Array.isArray(value) ? inside : [{ path: at, value: member }, ...inside];
  });
}

// Whether the service rejects the request because of the property: by its name, or by those of what it must hold.
function isNamed(outcome: Outcome, path: Path, value: unknown): boolean {
  const names = new Set([path.at(-1), ...(typeof value === "object" && value !== null ? Object.keys(value) : [])]);
  return violationsIn(outcome)
    .filter((description) => !CONDITIONAL.test(description))
    .some((description) => names.has(description.split(" ")[0]?.split(".").at(-1)));
}

function isConditional(outcome: Outcome): boolean {
  return violationsIn(outcome).some((description) => CONDITIONAL.test(description));
}

function violationsIn({ status, text }: Outcome): string[] {
  if (status !== 400) return [];
  const { details } = JSON.parse(text) as { details: { fieldViolations?: { description: string }[] }[] };
  return details.flatMap(({ fieldViolations = [] }) => fieldViolations.map(({ description }) => description));
}

function enumNumber(operation: PlacedOperation, value: unknown): number | undefined {
  return enumOf(operation, value)?.values.find(({ name }) => name === value)?.number;
}

function enumOf(operation: PlacedOperation, value: unknown): DescEnum | undefined {
  if (typeof value !== "string" || !/^[A-Z][A-Z0-9_]+$/.test(value)) return undefined;
  const { enums = [], messages = [] } = findMethod(operation)?.parent.file ?? {};
  return [...enums, ...messages.flatMap(({ nestedEnums }) => nestedEnums)].find(({ values }) =>
    values.some(({ name }) => name === value),
  );
}

// The empty value of the same type, which means absent.
function zeroOf(operation: PlacedOperation, value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return typeof value === "string" ? (enumOf(operation, value)?.values[0]?.name ?? "") : undefined;
}

function withoutParameter(path: string, { name }: Parameter): string {
  const [before = "", query = ""] = path.split("?");
  const kept = query.split("&").filter((part) => part !== "" && part.split("=")[0] !== encodeURIComponent(name));
  return withQuery(before, kept);
}

// The path with another value of one parameter: what stands between the literals around it.
function otherInPath(operation: PlacedOperation, path: string, { name }: Parameter): string {
  const [before = "", after = ""] = operation.path.split(`{${name}}`);
  const plain = (template: string) => template.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]+\}/g, ".+");
  return path.replace(new RegExp(`^(${plain(before)}).+?(${plain(after)})(?=\\?|$)`), `$1${NO_UID}$2`);
}

// Generated clients send the slashes of a uid encoded.
function withEncodedUids(path: string): string {
  return path.replace(/[0-9a-f]{40}(?:\/[0-9a-f]{16})+(?=[/:?]|$)/g, encodeURIComponent);
}

const isUidPattern = (pattern: string) => pattern.includes("[0-9a-f]{40}");

function patternsIn(schema: AnyObject): string[] {
  const { pattern, items } = schema as { pattern?: string; items?: AnyObject };
  return [...(pattern === undefined ? [] : [pattern]), ...(items === undefined ? [] : patternsIn(items))];
}

// Texts that may be uids and need not: those who wrote them, or what was said instead.
const ALSO_OTHERS: ReadonlySet<string> = new Set(["author", "reviewer", "source"]);

function findUidsWithoutPattern(value: unknown, schema: AnyObject, path = ""): string[] {
  const { $ref, items, properties, additionalProperties } = schema as {
    $ref?: string;
    items?: AnyObject;
    properties?: Record<string, AnyObject>;
    additionalProperties?: AnyObject | true;
  };
  if ($ref !== undefined) return findUidsWithoutPattern(value, atRef(world.document, $ref) as AnyObject, path);
  if (typeof value === "string") return isUidp(value) && !patternsIn(schema).some(isUidPattern) ? [path] : [];
  if (Array.isArray(value)) return value.flatMap((one) => findUidsWithoutPattern(one, items ?? {}, `${path}[]`));
  // An object with any fields, such as the body of an event: it shows a resource of whatever kind.
  if (typeof value !== "object" || value === null || additionalProperties === true) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    ALSO_OTHERS.has(key)
      ? []
      : findUidsWithoutPattern(member, properties?.[key] ?? additionalProperties ?? {}, `${path}.${key}`),
  );
}
