// The error of a name that is missing or breaks its rule is that of the specification, section 7, letter for letter: of
// every resource with such a name, in every version, over every protocol, in creates and updates.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  create,
  type DescField,
  type DescMethodUnary,
  fromJson,
  getOption,
  hasOption,
  type JsonObject,
  type JsonValue,
} from "@bufbuild/protobuf";
import { http } from "#gen/google/api/annotations_pb.js";
import type { PlacedOperation } from "../support/openapi/document.js";
import { methods, nameOf } from "./iam-methods.js";
import { type Arranged, type OperationWorld, startOperationWorld } from "./operation-world.js";
import { type RuleClient, ruleClients } from "./rules/clients.js";
import { findMethod, findUnservedStatus } from "./served.js";

const TYPE = "type.googleapis.com/google.rpc.";
const WRONG = "No Such Name!";
/** The rules of names by the message; that of groups for all others. */
const RULES: Readonly<Record<string, string>> = {
  Repo: "must match ^[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*$ and be at most 128 characters",
  Tag: "must match ^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$",
};
const NAME_RULE = "must match ^[a-z0-9 ._-]{1,}$";
/** Messages of which other fields are required as well: their errors follow, when the body is empty. */
const REQUIRE_MORE: ReadonlySet<string> = new Set(["IdentityProvider", "Role", "Tag", "Subscription", "Overlay"]);

/** A method that creates or updates a resource with a name. */
interface Named {
  readonly method: DescMethodUnary;
  readonly operation: PlacedOperation;
  /** The field of the request that has the resource; undefined where the request is the resource. */
  readonly resource: DescField | undefined;
  readonly message: string;
}

interface Told {
  readonly code: string | number;
  readonly message: string;
  readonly details: readonly JsonValue[];
}

let world: OperationWorld;
let clients: readonly RuleClient[];
let url: string;

before(async () => {
  world = await startOperationWorld();
  url = world.url;
  clients = ruleClients(url).filter(({ name }) => name !== "REST" && !name.endsWith("by GET"));
});

after(async () => {
  for (const client of clients) client.close();
  await world.stop();
});

function findNamed(): readonly Named[] {
  return methods.flatMap((method): Named[] => {
    if (!/^(Create|Update)/.test(method.name) || !hasOption(method, http)) return [];
    const { body = "" } = getOption(method, http);
    const resource = method.input.fields.find(({ name }) => name === body);
    const desc = body === "*" ? method.input : resource?.message;
    const operation = world.operations.find((one) => one.deprecated !== true && findMethod(one) === method);
    if (desc?.field.name === undefined || operation === undefined) return [];
    // The metadata of an identity have the name of a person.
    if (findUnservedStatus(operation) !== undefined || desc.name === "IdentityMetadata") return [];
    const message = desc.name.replace(/^AccountAssociations$/, "AccountAssociation");
    return [{ method, operation, resource: body === "*" ? undefined : resource, message }];
  });
}

/** Checks the error; `isAlone` says whether nothing else is wrong. */
function assertNameError({ code, message, details }: Told, named: Named, isMissing: boolean, isAlone: boolean): void {
  const rule = `name ${RULES[named.message] ?? NAME_RULE}`;
  const text = `Invalid argument: name: ${rule}`;
  assert.ok(code === 3 || code === "INVALID_ARGUMENT", `${code} ${message}`);
  if (isAlone) assert.equal(message, text);
  else assert.ok(message === text || message.startsWith(`${text}; `), message);
  const [info, request] = details as { "@type"?: string; reason?: string; fieldViolations?: object[] }[];
  assert.deepEqual([info?.["@type"], info?.reason], [`${TYPE}ErrorInfo`, "INVALID_ARGUMENT"]);
  assert.equal(request?.["@type"], `${TYPE}BadRequest`);
  const ofName = request?.fieldViolations?.filter((one) => (one as { field: string }).field === "name");
  assert.deepEqual(ofName, [{ field: "name", description: isMissing ? `${rule}: name is required` : rule }]);
  if (isAlone) assert.equal(request?.fieldViolations?.length, 1);
}

/** The bodies over REST that lack the name, or have another one than they may; `undefined` is no body. */
function bodiesOf({ method, message }: Named, { body }: Arranged) {
  const rest = body as JsonObject;
  const { name: _, ...unnamed } = rest;
  const isCreate = method.name.startsWith("Create");
  const requiresMore = REQUIRE_MORE.has(message);
  return [
    { what: "an empty name", body: { ...rest, name: "" }, isMissing: true, isAlone: true },
    { what: "a name that breaks its rule", body: { ...rest, name: WRONG }, isMissing: false, isAlone: true },
    { what: "null for a name", body: { ...rest, name: null }, isMissing: true, isAlone: true },
    ...(isCreate
      ? [
          { what: "no name", body: unnamed, isMissing: true, isAlone: true },
          { what: "an empty body", body: {}, isMissing: true, isAlone: !requiresMore },
          { what: "null for a body", body: null, isMissing: true, isAlone: !requiresMore },
          { what: "no body", body: undefined, isMissing: true, isAlone: !requiresMore },
        ]
      : []),
  ];
}

/** The same request for the other protocols: the values of the path, and a resource. */
function messageOf({ method, operation, resource }: Named, path: string, body: JsonObject | undefined) {
  const names: string[] = [];
  const rule = getOption(method, http);
  const templates = [rule, ...rule.additionalBindings].map(({ pattern }) => String(pattern.value));
  const template = templates.find((one) => plain(one) === plain(operation.path)) ?? "";
  const pattern = template.replaceAll(".", "\\.").replace(/\{([\w\\.]+)(?:=\*+)?\}/g, (_, name: string) => {
    names.push(name.replaceAll("\\.", "."));
    return "(.+)";
  });
  const [, ...values] = new RegExp(`^${pattern}$`).exec(decodeURIComponent(path.split("?")[0] ?? "")) ?? [];
  assert.equal(values.length, names.length, `${template} ${path}`);
  const json: JsonObject = resource === undefined ? { ...body } : body === undefined ? {} : { [resource.name]: body };
  for (const [i, name] of names.entries()) {
    const [head = "", inner] = name.split(".");
    if (inner === undefined) json[head] = values[i] ?? "";
    else json[head] = { ...(json[head] as JsonObject | undefined), [inner]: values[i] ?? "" };
  }
  if (method.name.startsWith("Update") && "updateMask" in method.input.field) json.updateMask = "name";
  return fromJson(method.input, json, { ignoreUnknownFields: true });
}

const plain = (template: string) => template.replace(/\{[^}]+\}/g, "{}");

describe("the error of a name", () => {
  it("is that of the specification over REST", async (t) => {
    const all = findNamed();
    assert.ok(all.length >= 20, `${all.length} methods`);
    for (const named of all) {
      await t.test(nameOf(named.method), async () => {
        const request = await world.arrange(named.operation);
        for (const { what, body, isMissing, isAlone } of bodiesOf(named, request)) {
          // Null is a body of its own: without one the request has none.
          const { status, text } = await world.send({ ...request, body });
          assert.equal(status, 400, `${what}: ${text}`);
          assertNameError(JSON.parse(text) as Told, named, isMissing, isAlone);
        }
      });
    }
  });

  it("is the same over gRPC, gRPC-Web, and Connect in binary and in JSON", async (t) => {
    assert.deepEqual(clients.map(({ name }) => name).sort(), [
      "Connect in JSON",
      "Connect in binary",
      "gRPC",
      "gRPC-Web",
    ]);
    for (const named of findNamed()) {
      await t.test(nameOf(named.method), async () => {
        const { path, body, bearer } = await world.arrange(named.operation);
        const { name: _, ...unnamed } = body as JsonObject;
        const isCreate = named.method.name.startsWith("Create");
        for (const client of clients) {
          const check = async (resource: JsonObject | undefined, isMissing: boolean, isAlone: boolean) => {
            const told = await client.call(named.method, messageOf(named, path, resource), bearer);
            assertNameError(told, named, isMissing, isAlone);
          };
          await check({ ...unnamed, name: WRONG }, false, true);
          await check({ ...unnamed, name: "" }, true, true);
          if (!isCreate) continue;
          await check({}, true, !REQUIRE_MORE.has(named.message));
          await check(undefined, true, !REQUIRE_MORE.has(named.message));
        }
      });
    }
  });

  it("is no other for a request without anything in it", async () => {
    const group = findNamed().find(({ method }) => nameOf(method) === "iam.v2beta1.GroupsService.CreateGroup");
    assert.ok(group);
    const { bearer } = await world.arrange(group.operation);
    for (const client of clients) {
      const request = create(group.method.input, { parent: world.organisation });
      assertNameError(await client.call(group.method, request, bearer), group, true, true);
    }
  });
});
