// Every operation that the document of a running service speaks of does what the
// document says: its example is accepted, its response has the schema, each of its
// parameters is understood, and its rejections are errors as described.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  type AnyObject,
  createValidators,
  type PlacedOperation,
  type Validators,
} from "../support/openapi/document.js";
import { withQuery } from "../support/openapi/request.js";
import { isCampaign, sample } from "../support/scale.js";
import { type Arranged, type OperationWorld, startOperationWorld } from "./operation-world.js";
import { findUnservedStatus } from "./served.js";

const FORM = "application/x-www-form-urlencoded";

let world: OperationWorld;
let validators: Validators;

before(async () => {
  world = await startOperationWorld();
  validators = createValidators(world.document);
});

after(() => world.stop());

describe("every operation of the document", () => {
  it("does what the document says", async (t) => {
    const { operations } = world;
    assert.ok(operations.length >= 8);
    const exercised = new Set<string>();
    for (const operation of operations) {
      await t.test(operation.operationId, async () => {
        const rejection = findUnservedStatus(operation);
        if (rejection === undefined) await doesWhatItSays(operation);
        else await assertStatus(rejection, operation, await world.arrange(operation));
        await assertRejects(operation);
        exercised.add(operation.operationId);
      });
    }
    assert.deepEqual(
      [...exercised],
      operations.map(({ operationId }) => operationId),
    );
  });

  it("is served, or refused to everybody who may call it", () => {
    const refused = world.operations.filter((one) => findUnservedStatus(one) !== undefined).length;
    assert.ok(refused > 0 && refused < world.operations.length / 5, `${refused} are refused`);
  });
});

it("every example of the document has the form of its own schema", () => {
  let shown = 0;
  for (const { operationId, parameters, requestBody, responses } of world.operations) {
    const contents = [requestBody?.content, responses["200"]?.content].flatMap((all) => Object.values(all ?? {}));
    for (const { schema, example } of [...parameters, ...contents]) {
      if (schema === undefined || example === undefined) continue;
      assert.equal(validators.of(schema)(example), undefined, operationId);
      shown++;
    }
  }
  assert.ok(shown >= 2 * world.operations.length, `${shown} examples`);
});

it("a path that may end where its ** begins is described without a parameter, a former path as deprecated", () => {
  const { paths } = world.document;
  for (const version of ["v1", "v2beta1", "v2"]) {
    const { post, ...others } = paths[`/iam/${version}/groups/`] ?? {};
    assert.deepEqual([post?.parameters, Object.keys(others)], [[], []], version);
  }
  for (const version of ["v2beta1", "v2"]) {
    const former = paths[`/iam/${version}/rolebindings/{uid}`]?.get;
    assert.equal(former?.deprecated, true);
    assert.match(former?.description ?? "", new RegExp(`former spelling of .*/iam/${version}/roleBindings/{uid}`));
    assert.equal(paths[`/iam/${version}/roleBindings/{uid}`]?.get?.deprecated, undefined);
  }
});

// The stable names of version 2 and former paths lead to the handlers of the beta, which is tried in full.
function hasHandlerOfAnother({ operationId, deprecated }: PlacedOperation): boolean {
  return !isCampaign && (operationId.startsWith("v2_") || deprecated === true);
}

async function doesWhatItSays(operation: PlacedOperation): Promise<void> {
  await succeeds(operation, await world.arrange(operation));
  if (hasHandlerOfAnother(operation)) return;
  if (operation.method === "PATCH") await changesNothingUnasked(operation);
  for (const part of await world.optionalParts(operation)) {
    const request = await world.arrange(operation);
    const extended = { ...request, path: withQuery(request.path, [part]) };
    await succeeds(operation, extended);
    if (takesForm(operation)) await succeeds(operation, asForm(extended, await bearerOf(operation)));
  }
}

// An update that names no field answers the resource, and so does one with all that a client has read of it. Neither
// clears what is never shown, such as a secret, nor takes time or a row of the audit log unless values were given.
async function changesNothingUnasked(operation: PlacedOperation): Promise<void> {
  const request = await world.arrange(operation);
  const send = async (method: string, body?: AnyObject) => {
    const { status, text } = await world.send({ ...request, method, body });
    assert.equal(status, 200, `${method} ${request.path} ${JSON.stringify(body)}: ${text}`);
    return JSON.parse(text) as AnyObject;
  };
  const isReadable = world.operations.some(({ method, path }) => method === "GET" && path === operation.path);
  // The older version of the API replaces a resource as a whole.
  if (operation.path.includes("/v1/")) return;
  const row = await newestAuditRow();
  const empty = await send("PATCH");
  if (isReadable) assert.deepEqual(empty, await send("GET"));
  assert.deepEqual(await send("PATCH", {}), empty);
  assert.deepEqual(await newestAuditRow(), row);
  // Where the body is the whole request, the resource is a field of it.
  const example = (request.body ?? {}) as AnyObject;
  const names = Object.keys(example);
  const isResource = names.some((name) => name in empty);
  const whole = isResource ? undefined : names.find((name) => typeof example[name] === "object");
  const { updateTime, ...same } = await send("PATCH", whole === undefined ? empty : { [whole]: empty });
  assert.deepEqual(same, withoutTime(empty));
}

const withoutTime = ({ updateTime, ...rest }: AnyObject) => rest;
const newestAuditRow = () => world.store.read((tx) => tx.audit.listNewest(1));

async function succeeds(operation: PlacedOperation, request: Arranged): Promise<void> {
  const { status, text } = await world.send(request);
  const told = `${request.method} ${request.path} ${request.form ?? JSON.stringify(request.body)}: ${status} ${text}`;
  assert.equal(status, 200, told);
  const schema = operation.responses["200"]?.content?.["application/json"]?.schema;
  if (schema === undefined) assert.equal(text, "", told);
  else assert.equal(validators.of(schema)(JSON.parse(text)), undefined, told);
}

async function assertStatus(expected: number, operation: PlacedOperation, request: Arranged): Promise<void> {
  const { status, text } = await world.send(request);
  assert.equal(status, expected, `${operation.operationId}: ${text}`);
  assert.equal(validators.error(JSON.parse(text)), undefined, text);
}

/** How many operations were sent with the bearer of another scheme, which is each of the others in turn. */
let rejections = 0;

async function assertRejects(operation: PlacedOperation): Promise<void> {
  const request = await world.arrange(operation);
  const scheme = world.schemeOf(operation);
  if (scheme !== undefined) await assertStatus(401, operation, { ...request, bearer: undefined });
  else await succeeds(operation, { ...request, bearer: undefined });
  const others = Object.keys(world.bearers).filter((other) => scheme !== undefined && other !== scheme);
  for (const other of hasHandlerOfAnother(operation) ? [] : sample(others, rejections++))
    await assertStatus(401, operation, { ...request, bearer: await world.bearers[other]?.() });
  const another = await world.arrange(operation);
  const unknown = { ...another, path: withQuery(another.path, ["no_such_parameter=1"]) };
  // Parameters that do not exist are refused, but where clients of other versions send their own.
  if (operation.path.startsWith("/sts/")) await succeeds(operation, unknown);
  else await assertStatus(400, operation, unknown);
}

function takesForm({ requestBody }: PlacedOperation): boolean {
  return requestBody?.content[FORM] !== undefined;
}

// All that is in the query as a form instead.
function asForm({ path, ...request }: Arranged, bearer: string | undefined): Arranged {
  const [before = "", form = ""] = path.split("?");
  return { ...request, path: before, form, bearer };
}

async function bearerOf(operation: PlacedOperation): Promise<string | undefined> {
  return world.bearers[world.schemeOf(operation) ?? ""]?.();
}
