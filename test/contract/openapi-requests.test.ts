// The schemas of requests say what the service does: of every accepted request each property and parameter is left out,
// set to null, or set to a value that is no uid, and the service must reject what the schema rejects. In turn, what the
// service rejects by the name of the property must be invalid by the schema.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescEnum } from "@bufbuild/protobuf";
import { builtinRoleUid } from "../../src/kernel/ids.js";
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
// A rule about two fields that are in no oneof is one that no schema says.
const CONDITIONAL =
  /^\S+ is required (?:unless|for) |^\S+ must (?:name another repo, |be the uid of an overlay of|be KIND_)/;
/** What the service says of a field or of a oneof that is not there, and of a list without elements. */
const ABSENCE = /\bis required$|^\S+ must (?:have|be) (?:one of |\S+ or )|^set either \S+ or \S+$|\bat least one\b/;

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

  it("requires of messages that its example lacks what the service asks for", async (t) => {
    const counts: Counts = { refused: 0, accepted: 0, required: 0 };
    for (const operation of operations()) {
      const schema = operation.requestBody?.content[JSON_TYPE]?.schema;
      if (schema === undefined || operation.method === "PATCH") continue;
      await t.test(operation.operationId, () => checkMessages(operation, schema, counts));
    }
    // Of most the sample values are good enough to be accepted.
    assert.ok(counts.accepted >= 60 && counts.required >= 40, JSON.stringify(counts));
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
      const check = async (
        change: (parent: Record<string | number, unknown>, key: string | number) => void,
        clears = false,
      ) => {
        const { outcome, changed } = await sendWith(operation, path, change);
        if (outcome === undefined) return undefined;
        const isValid = validate(changed) === undefined;
        const told = `${operation.operationId} ${JSON.stringify(changed)}: ${outcome.status} ${outcome.text}`;
        // An update may clear a message that has no field set.
        const mayPass = operation.method === "PATCH" && typeof value === "object";
        if (!isValid && !(mayPass && outcome.status === 200)) assertTyped(outcome, told);
        else assert.ok(!isNamed(outcome, path, value), told);
        if (isValid && !clears) assert.ok(!lacksSomething(outcome), told);
        return { isValid, told, ...outcome };
      };
      const without = await check((parent, key) => delete parent[key]);
      if (without !== undefined) seen[without.isValid ? "optional" : "required"]++;
      // In an update null names a field to be cleared.
      const clears = operation.method === "PATCH";
      const empty = await check((parent, key) => {
        parent[key] = null;
      }, clears);
      if (!clears) assert.equal(empty?.status, without?.status, empty?.told);
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

  async function checkMessages(operation: PlacedOperation, schema: AnyObject, counts: Counts): Promise<void> {
    const validate = of(schema);
    const send = async (body: unknown) => {
      const outcome = await world.send({ ...(await world.arrange(operation)), body });
      const told = `${operation.operationId} ${JSON.stringify(body)}: ${outcome.status} ${outcome.text}`;
      return { isValid: validate(body) === undefined, outcome, told };
    };
    const { body: example } = await world.arrange(operation);
    // A batch has what its requests need not have each.
    const base = isBatch(example) ? { ...example, roleUid: builtinRoleUid("viewer") } : example;
    for (const body of bodiesWith(schema, base)) {
      const { isValid, outcome, told } = await send(body);
      assert.ok(isValid, told);
      assert.ok(!lacksSomething(outcome), told);
      counts[outcome.status === 200 ? "accepted" : "refused"]++;
      for (const { path } of propertiesIn(body)) {
        if (isBatch(body) && path[0] === "roleUid") continue;
        const less = await send(withoutProperty(body, path));
        if (less.isValid) assert.ok(!lacksSomething(less.outcome), less.told);
        else assertTyped(less.outcome, less.told);
        if (!less.isValid) counts.required++;
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

// Whether the service rejects the request because something is not there that no document can require.
function lacksSomething(outcome: Outcome): boolean {
  return violationsIn(outcome).some((description) => ABSENCE.test(description) && !CONDITIONAL.test(description));
}

function isConditional(outcome: Outcome): boolean {
  return violationsIn(outcome).some((description) => CONDITIONAL.test(description));
}

function violationsIn({ status, text }: Outcome): string[] {
  if (status !== 400) return [];
  const { details } = JSON.parse(text) as { details: { fieldViolations?: { description: string }[] }[] };
  return details.flatMap(({ fieldViolations = [] }) => fieldViolations.map(({ description }) => description));
}

function isBatch(body: unknown): body is AnyObject {
  return typeof body === "object" && body !== null && "requests" in body;
}

/** How many bodies the service refused and accepted, and how many properties were required. */
type Counts = Record<"refused" | "accepted" | "required", number>;

/** Good values of properties by their names. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  account: "123456789012",
  awsAccount: "123456789012",
  projectId: "example-project",
  projectNumber: "123456789012",
  issuer: "https://issuer.example.org",
  arn: "arn:aws:sts::123456789012:assumed-role/role/session",
  issuerKeys: JSON.stringify({
    keys: [{ kty: "OKP", crv: "Ed25519", alg: "EdDSA", kid: "a", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }],
  }),
};

// The bodies of an operation that have one more message each, at any depth, with what it requires and no more.
function bodiesWith(schema: AnyObject, body: unknown): unknown[] {
  const { items } = resolve(schema) as { items?: AnyObject };
  return items === undefined ? variantsOf(schema, body as AnyObject) : variantsOf(items).map((one) => [one]);
}

// What each message in a value may be, the others left as they are in `base`.
function variantsOf(schema: AnyObject, base = samplesFor(schema)[0] as AnyObject, depth = 0): AnyObject[] {
  const { properties = {} } = resolve(schema) as { properties?: Record<string, AnyObject> };
  if (depth > 4) return [];
  return Object.entries(properties).flatMap(([name, property]) => {
    const { items } = resolve(property) as { items?: AnyObject };
    const target = items ?? property;
    if (resolve(target).properties === undefined) return [];
    const others: Record<string, unknown> = { ...base };
    for (const other of otherMembers(name, property)) delete others[other];
    return [...samplesFor(target), ...variantsOf(target, undefined, depth + 1)].map((value) => ({
      ...others,
      [name]: items === undefined ? value : [value],
    }));
  });
}

// The other members of the oneof that a property is in, which its description names.
function otherMembers(name: string, { description = "" }: AnyObject): string[] {
  const [, members = ""] = / one is set of (.*)\./.exec(String(description)) ?? [];
  return [...members.matchAll(/`(\w+)`/g)].map(([, member = ""]) => member).filter((member) => member !== name);
}

// The schema itself, behind references and beside null.
function resolve(schema: AnyObject): AnyObject {
  const { $ref, anyOf } = schema as { $ref?: string; anyOf?: AnyObject[] };
  if ($ref !== undefined) return resolve(atRef(world.document, $ref) as AnyObject);
  const [first] = anyOf?.filter(({ type }) => type !== "null") ?? [];
  return first === undefined ? schema : resolve(first);
}

// What a schema requires and no more; several, one for each member of a required oneof.
function samplesFor(schema: AnyObject, name = ""): unknown[] {
  const {
    type,
    properties,
    required = [],
    items,
    not,
    enum: values,
    pattern,
    format,
    additionalProperties,
    propertyNames,
  } = resolve(schema) as {
    type?: string | string[];
    properties?: Record<string, AnyObject>;
    required?: string[];
    items?: AnyObject;
    not?: { anyOf?: { properties: object }[] };
    enum?: string[];
    pattern?: string;
    format?: string;
    additionalProperties?: AnyObject;
    propertyNames?: { enum?: string[] };
  };
  if (properties !== undefined) {
    const base = Object.fromEntries(required.map((one) => [one, samplesFor(properties[one] ?? {}, one)[0]]));
    let made: AnyObject[] = [base];
    for (const { properties: members } of not?.anyOf ?? []) {
      made = made.flatMap((one) =>
        Object.keys(members).flatMap((member) =>
          samplesFor(properties[member] ?? {}, member).map((value) => ({ ...one, [member]: value })),
        ),
      );
    }
    return made;
  }
  if (Object.hasOwn(SAMPLES, name)) return [SAMPLES[name]];
  if (items !== undefined) return [[samplesFor(items, name)[0]]];
  if (additionalProperties !== undefined)
    return [{ [propertyNames?.enum?.[0] ?? "1"]: samplesFor(additionalProperties)[0] }];
  if (values !== undefined) return [values[1]];
  if (pattern?.includes("[0-9a-f]{40}")) return [world.organisation];
  if ([type].flat().includes("integer")) return [1];
  if ([type].flat().includes("boolean")) return [true];
  if (format === "int64") return ["1"];
  return ["text"];
}

function withoutProperty(value: unknown, path: Path): unknown {
  const changed = structuredClone(value);
  const parent = path.slice(0, -1).reduce((at, key) => (at as AnyObject)[key], changed) as Record<string, unknown>;
  delete parent[path.at(-1) ?? ""];
  return changed;
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
