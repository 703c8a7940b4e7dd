// Every operation that the document of a running service speaks of does what the
// document says: its example is accepted, its answer has the schema, each of its
// parameters is understood, and its refusals are errors as described.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import { type Harness, startHarness } from "../support/harness.js";
import {
  type ApiDocument,
  createValidators,
  operationsOf,
  type PlacedOperation,
  type Validators,
} from "../support/openapi/document.js";
import {
  collectionOf,
  createOperation,
  type Fill,
  isCreate,
  type PlainRequest,
  queryPart,
  readDocument,
  requestOf,
  withQuery,
} from "../support/openapi/request.js";

const ORGANISATION = "acme.example";

// Where what is created lies: in a group of its own unless it is said here.
const parents: Readonly<Record<string, () => string | Promise<string>>> = {
  identityProviders: () => organisation,
  externalGroupRoleMappings: () => create("identityProviders"),
};

type Known = Map<string, unknown>;

// What parameters and properties stand for, by their names; some are known together.
const things: Readonly<Record<string, (known: Known, operation: PlacedOperation) => unknown>> = {
  group_uid: () => organisation,
  group: () => organisation,
  scope: () => organisation,
  identityUid: () => create("identities", organisation),
  identity_provider_uid: providerWithToken,
  async names(known) {
    const mapping = await create("externalGroupRoleMappings");
    known.set("parent", parentOf(mapping));
    return [mapping];
  },
};

// Values of parameters that need not be given; of enums it is every one there is.
const values: Readonly<Record<string, () => readonly unknown[]>> = {
  "uidp.ancestors_of": () => [`${organisation}/0123456789abcdef`],
  "uidp.descendants_of": () => [organisation],
  "uidp.children_of": () => [organisation, "/"],
  "uidp.in_root": () => [true, false],
  "uidp.ids": () => [organisation],
  identity: () => [organisation],
  group: () => [organisation],
  role: () => [builtinRoleUid("viewer")],
  identity_provider_uid: () => [`${organisation}/0123456789abcdef`],
  key_id: () => ["key"],
  name: () => ["team"],
  page_size: () => [1, 200, 1000],
  page_token: () => [""],
  order_by: () => ["created_at", "created_at desc"],
  skip: () => [0, 3],
  updateMask: () => ["*"],
};

let harness: Harness;
let document: ApiDocument;
let validators: Validators;
let operations: readonly PlacedOperation[] = [];
let organisation = "";
let token = "";

before(async () => {
  harness = await startHarness();
  document = await readDocument(harness.url);
  validators = createValidators(document);
  operations = operationsOf(document);
  ({ group: organisation } = await harness.organisation(ORGANISATION));
  const { store } = harness.app.installation;
  await store.write((tx) => verifyGroup(tx, organisation, "ORG_KIND_CUSTOMER", { ids: randomIds, nowMs: Date.now() }));
  const caller = await harness.identity({ email: `ann@${ORGANISATION}` });
  ({ token } = caller);
  await harness.bind(caller.uid, "owner", organisation);
});

after(() => harness.stop());

describe("every operation of the document", () => {
  it("does what the document says", async (t) => {
    assert.ok(operations.length >= 8);
    const exercised = new Set<string>();
    for (const operation of operations) {
      await t.test(operation.operationId, async () => {
        await succeeds(operation, await arranged(operation));
        for (const part of optionalParts(operation)) {
          const request = await arranged(operation);
          await succeeds(operation, { ...request, path: withQuery(request.path, [part]) });
        }
        await isRefused(operation, await arranged(operation));
        exercised.add(operation.operationId);
      });
    }
    assert.deepEqual(
      [...exercised],
      operations.map(({ operationId }) => operationId),
    );
  });
});

async function succeeds(operation: PlacedOperation, request: PlainRequest): Promise<unknown> {
  const { status, text } = await send(request, token);
  const told = `${request.method} ${request.path} ${JSON.stringify(request.body)}: ${status} ${text}`;
  assert.equal(status, 200, told);
  const schema = operation.responses["200"]?.content?.["application/json"]?.schema;
  if (schema === undefined) {
    assert.equal(text, "", told);
    return undefined;
  }
  const answer: unknown = JSON.parse(text);
  assert.equal(validators.of(schema)(answer), undefined, told);
  return answer;
}

async function isRefused({ security }: PlacedOperation, request: PlainRequest): Promise<void> {
  const { status, text } = await send(request, undefined);
  const isOpen = security?.length === 0;
  assert.equal(status, isOpen ? 200 : 401, text);
  if (!isOpen) assert.equal(validators.error(JSON.parse(text)), undefined, text);
  // Parameters that do not exist are refused, whatever the operation.
  const unknown = await send({ ...request, path: withQuery(request.path, ["no_such_parameter=1"]) }, token);
  assert.equal(unknown.status, 400, unknown.text);
  assert.equal(validators.error(JSON.parse(unknown.text)), undefined, unknown.text);
}

function optionalParts({ operationId, parameters }: PlacedOperation): string[] {
  return parameters.flatMap(({ name, required, schema }) => {
    if (required === true) return [];
    const known = (schema.enum as readonly unknown[] | undefined) ?? values[name]?.();
    assert.ok(known, `${operationId}: no value for the parameter ${name}`);
    return known.map((value) => queryPart(name, value));
  });
}

// The example of an operation with things of its own, so that nothing depends on what ran before.
async function arranged(operation: PlacedOperation, parent?: string): Promise<PlainRequest> {
  const collection = collectionOf(operation);
  const known: Known = new Map();
  for (const name of namesIn(operation)) {
    const thing = things[name];
    if (thing !== undefined) known.set(name, await thing(known, operation));
  }
  if (isCreate(operation)) {
    const [place] = operation.parameters;
    known.set(place?.name ?? "", parent ?? (await (parents[collection] ?? freshGroup)()));
  } else if (operation.path.includes("{uid}")) {
    known.set("uid", await create(collection));
  } else if (namesIn(operation).includes("parent") && !known.has("parent")) {
    known.set("parent", await (parents[collection] ?? freshGroup)());
  }
  const fill: Fill = (name) => known.get(name);
  return requestOf(operation, fill);
}

// Every operation on SCIM tokens but the one that makes the first needs one, and its etag.
async function providerWithToken(known: Known, { operationId }: PlacedOperation): Promise<string> {
  const uid = await create("identityProviders");
  const generate = operations.find((one) => one.path.endsWith(":generateScimToken"));
  if (generate === undefined || generate.operationId === operationId) return uid;
  const request = requestOf(generate, (name) => (name === "identity_provider_uid" ? uid : undefined));
  const { etag } = (await succeeds(generate, request)) as { etag: string };
  known.set("etag", etag);
  return uid;
}

function freshGroup(): Promise<string> {
  return create("groups", organisation);
}

async function create(collection: string, parent?: string): Promise<string> {
  const operation = createOperation(operations, collection);
  assert.ok(operation, `nothing creates ${collection}`);
  const { uid } = (await succeeds(operation, await arranged(operation, parent))) as { uid: string };
  return uid;
}

function namesIn({ parameters, requestBody }: PlacedOperation): string[] {
  const names = parameters.filter(({ required }) => required === true).map(({ name }) => name);
  JSON.stringify(requestBody?.content["application/json"]?.example ?? {}, (key, value) => {
    names.push(key);
    return value;
  });
  return names;
}

async function send({ method, path, body }: PlainRequest, bearer: string | undefined) {
  const headers = {
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) };
  const response = await fetch(harness.url + path, init);
  return { status: response.status, text: await response.text() };
}
