// Every operation that the document of a running service speaks of does what the
// document says: its example is accepted, its answer has the schema, each of its
// parameters is understood, and its refusals are errors as described.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { verifyGroup } from "../../src/iam/operator/operate.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { parentOf } from "../../src/kernel/uidp.js";
import { invite } from "../issuer/auth-world.js";
import { type ExchangeWorld, startExchangeWorld } from "../issuer/exchange/exchange-world.js";
import {
  type AnyObject,
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
import { type KnownCaller, knownCaller } from "./known-caller.js";
import { imageDigest, letChangeReadmes, placeAdvisory, placeRepo } from "./registry-things.js";

const ORGANISATION = "acme.example";
const FORM = "application/x-www-form-urlencoded";

// Where what is created lies: in a group of its own unless it is said here.
const parents: Readonly<Record<string, () => string | Promise<string>>> = {
  identityProviders: () => organisation,
  externalGroupRoleMappings: () => create("identityProviders"),
  tags: () => create("repos"),
};

type Known = Map<string, unknown>;

// What parameters and properties stand for, by their names; some are known together.
const things: Readonly<Record<string, (known: Known, operation: PlacedOperation) => unknown>> = {
  group_uid: () => organisation,
  group: () => organisation,
  scope: () => organisation,
  identityUid: () => create("identities", organisation),
  identityId: () => somebody.identity,
  code: async () => (await invite(world, { group: organisation, by: { token } })).code,
  // Whom nobody but itself may delete.
  async id(known) {
    const [person] = await somebody.people(1);
    known.set("bearer", person?.token);
    return person?.uid;
  },
  identity_provider_uid: providerWithToken,
  source: () => repo,
  repo_uid: () => repo,
  digest: () => imageDigest,
  async names(known) {
    const mapping = await create("externalGroupRoleMappings");
    known.set("parent", parentOf(mapping));
    return [mapping];
  },
};

// Values of parameters that need not be given; of enums it is every one there is.
const values: Readonly<Record<string, (operationId: string) => readonly unknown[] | Promise<readonly unknown[]>>> = {
  "uidp.ancestors_of": () => [`${organisation}/0123456789abcdef`],
  "uidp.descendants_of": () => [organisation],
  "uidp.children_of": () => [organisation, "/"],
  "uidp.in_root": () => [true, false],
  "uidp.ids": () => [organisation],
  identity: () => [somebody.identity],
  group: () => [organisation],
  role: () => [builtinRoleUid("viewer")],
  identity_provider_uid: () => [`${organisation}/0123456789abcdef`],
  key_id: () => ["key"],
  name: () => ["team"],
  page_size: () => [1, 200, 1000],
  page_token: () => [""],
  // Of tags it is not told when they were created.
  order_by: (id) => (id.endsWith("_ListTags") ? ["updated_at", "updated_at desc"] : ["created_at", "created_at desc"]),
  skip: () => [0, 3],
  updateMask: () => ["*"],
  aud: () => [world.url],
  cap: () => ["groups.list"],
  scope: () => [organisation],
  scopes: () => [organisation],
  identity_provider: () => [somebody.provider],
  code: () => somebody.headlessCodes(1),
  updated_since: () => ["2026-01-31T12:00:00Z"],
  include_referrers: () => [true, false],
  include_dates: () => [true, false],
  include_epochs: () => [true, false],
  digest: () => [imageDigest],
  architecture: () => ["amd64"],
  advisory_ids: () => ["CGA-2345-6789-cfgh"],
  legacy_advisory_ids: () => ["CVE-2026-1"],
  artifact_names: () => ["repo"],
  artifact_types: () => ["apk"],
  artifact_architectures: () => ["x86_64"],
  component_names: () => ["repo"],
  component_types: () => ["go-module"],
  component_locations: () => ["/usr/bin"],
  aliases: () => ["CVE-2026-1"],
  origin: () => ["repo"],
  event_authors: () => ["somebody"],
  exclude_event_authors: () => ["somebody"],
  event_reviewers: () => ["somebody"],
  query: () => ["Re%"],
};

// Parameters that must be given although the protos do not say so.
const needed: Readonly<Record<string, string>> = {
  SecurityTokenService_Exchange: "aud",
  SecurityTokenService_Exchange_2: "aud",
  Auth_GetHeadlessSession: "code",
};

// Bearers that a call is accepted with, by the security scheme that the document names.
const bearers: Readonly<Record<string, () => string | undefined | Promise<string | undefined>>> = {
  bearer: () => token,
  foreignToken: () => somebody.oidcToken(),
  refreshToken: async () => (await somebody.refreshTokens(1))[0],
};

/** A request and who sends it. */
interface Arranged extends PlainRequest {
  readonly bearer: string | undefined;
  /** Sent as a form. */
  readonly form?: string;
}

let world: ExchangeWorld;
let somebody: KnownCaller;
let document: ApiDocument;
let validators: Validators;
let operations: readonly PlacedOperation[] = [];
let organisation = "";
/** Not copied from another, and with an image. */
let repo = "";
let token = "";

before(async () => {
  world = await startExchangeWorld();
  const { harness } = world;
  document = await readDocument(world.url);
  validators = createValidators(document);
  operations = operationsOf(document);
  ({ group: organisation } = await harness.organisation(ORGANISATION));
  const context = { ids: randomIds, nowMs: Date.now() };
  await world.write((tx) => verifyGroup(tx, organisation, "ORG_KIND_CUSTOMER", context));
  const caller = await harness.identity({ email: `ann@${ORGANISATION}` });
  ({ token } = caller);
  await harness.bind(caller.uid, "owner", organisation);
  repo = await world.write(async (tx) => {
    await letChangeReadmes(tx, caller.uid, organisation);
    return placeRepo(tx, organisation, "application");
  });
  somebody = await knownCaller(world, organisation);
});

after(() => world.stop());

describe("every operation of the document", () => {
  it("does what the document says", async (t) => {
    assert.ok(operations.length >= 8);
    const exercised = new Set<string>();
    for (const operation of operations) {
      await t.test(operation.operationId, async () => {
        await succeeds(operation, await arranged(operation));
        for (const part of await optionalParts(operation)) {
          const request = await arranged(operation);
          const extended = { ...request, path: withQuery(request.path, [part]) };
          await succeeds(operation, extended);
          if (takesForm(operation)) await succeeds(operation, asForm(extended, await bearerOf(operation)));
        }
        await isRefused(operation);
        exercised.add(operation.operationId);
      });
    }
    assert.deepEqual(
      [...exercised],
      operations.map(({ operationId }) => operationId),
    );
  });
});

async function succeeds(operation: PlacedOperation, request: Arranged): Promise<unknown> {
  const { status, text } = await send(request);
  const told = `${request.method} ${request.path} ${request.form ?? JSON.stringify(request.body)}: ${status} ${text}`;
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

async function isRefused(operation: PlacedOperation): Promise<void> {
  const request = await arranged(operation);
  const scheme = schemeOf(operation);
  const { status, text } = await send({ ...request, bearer: undefined });
  assert.equal(status, scheme === undefined ? 200 : 401, text);
  if (scheme !== undefined) assert.equal(validators.error(JSON.parse(text)), undefined, text);
  for (const [other, made] of Object.entries(bearers)) {
    if (scheme === undefined || other === scheme) continue;
    const refused = await send({ ...request, bearer: await made() });
    assert.equal(refused.status, 401, `${other}: ${refused.text}`);
  }
  // Parameters that do not exist are refused, but where clients of other versions send their own.
  const passesOver = operation.path.startsWith("/sts/");
  const other = await arranged(operation);
  const unknown = await send({ ...other, path: withQuery(other.path, ["no_such_parameter=1"]) });
  assert.equal(unknown.status, passesOver ? 200 : 400, unknown.text);
  if (!passesOver) assert.equal(validators.error(JSON.parse(unknown.text)), undefined, unknown.text);
}

function takesForm({ requestBody }: PlacedOperation): boolean {
  return requestBody?.content[FORM] !== undefined;
}

// All that is in the query as a form instead.
function asForm({ path, ...request }: Arranged, bearer: string | undefined): Arranged {
  const [before = "", form = ""] = path.split("?");
  return { ...request, path: before, form, bearer };
}

// The name of the security scheme; undefined for what is open to everybody.
function schemeOf({ security = document.security }: PlacedOperation): string | undefined {
  return security.flatMap((one) => Object.keys(one))[0];
}

async function bearerOf(operation: PlacedOperation): Promise<string | undefined> {
  return bearers[schemeOf(operation) ?? ""]?.();
}

async function optionalParts({ operationId, parameters }: PlacedOperation): Promise<string[]> {
  const parts: string[] = [];
  for (const { name, required, schema } of parameters) {
    if (required === true || needed[operationId] === name) continue;
    const { enum: all = (schema.items as AnyObject | undefined)?.enum } = schema;
    const known = (all as readonly unknown[] | undefined) ?? (await values[name]?.(operationId));
    assert.ok(known, `${operationId}: no value for the parameter ${name}`);
    parts.push(...known.map((value) => queryPart(name, value)));
  }
  return parts;
}

// The example of an operation with things of its own, so that nothing depends on what ran before.
async function arranged(operation: PlacedOperation, parent?: string): Promise<Arranged> {
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
    // The readme of a copy is that of its source.
    known.set("uid", operation.path.endsWith("/readme") ? repo : await create(collection));
  } else if (namesIn(operation).includes("parent") && !known.has("parent")) {
    known.set("parent", await (parents[collection] ?? freshGroup)());
  }
  const fill: Fill = (name) => known.get(name);
  const request = requestOf(operation, fill);
  const name = needed[operation.operationId];
  const given =
    name === undefined
      ? []
      : ((await values[name]?.(operation.operationId)) ?? []).map((value) => queryPart(name, value));
  const bearer = (known.get("bearer") as string | undefined) ?? (await bearerOf(operation));
  return { ...request, path: withQuery(request.path, given), bearer };
}

// Every operation on SCIM tokens but the one that makes the first needs one, and its etag.
async function providerWithToken(known: Known, { operationId }: PlacedOperation): Promise<string> {
  const uid = await create("identityProviders");
  const generate = operations.find((one) => one.path.endsWith(":generateScimToken"));
  if (generate === undefined || generate.operationId === operationId) return uid;
  const request = requestOf(generate, (name) => (name === "identity_provider_uid" ? uid : undefined));
  const { etag } = (await succeeds(generate, { ...request, bearer: token })) as { etag: string };
  known.set("etag", etag);
  return uid;
}

function freshGroup(): Promise<string> {
  return create("groups", organisation);
}

async function create(collection: string, parent?: string): Promise<string> {
  // Imported by operators, made by no call.
  if (collection === "advisories") return world.write((tx) => placeAdvisory(tx, organisation, "text"));
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

async function send({ method, path, body, form, bearer }: Arranged) {
  const sent = form ?? (body === undefined ? undefined : JSON.stringify(body));
  const headers = {
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    ...(sent !== undefined && { "content-type": form === undefined ? "application/json" : FORM }),
  };
  const response = await fetch(world.url + path, { method, headers, ...(sent !== undefined && { body: sent }) });
  return { status: response.status, text: await response.text() };
}
