// Every served method is callable by somebody whom the operator can make: a new identity, bound to an operator role with
// what the method declares and nothing else.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { bindIdentity } from "../../src/iam/operator/operate.js";
import { createOperatorRole } from "../../src/iam/operator/roles.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { readCapabilities } from "../../src/pipeline/method-table.js";
import { insertGroup, type Placed } from "../iam/populate.js";
import { type Harness, startHarness } from "../support/harness.js";
import { isCampaign } from "../support/scale.js";
import { type RawClient, rawGrpc, requestOf } from "./iam-clients.js";
import { findScopeField, isUnavailable, methods, nameOf, requestAt, services, subjectOf } from "./iam-methods.js";
import { listUnavailable } from "./unavailable-docs.js";

// Methods that need more than they declare, which any role of an organisation has: to see that a token was never made,
// and to grant what an invite grants. What an operator role gives cannot be granted.
const ALSO_VIEWER = /\.(RevokeScimToken|UpdateGroupInvite)$/;

const READ = /^(Get|List|Lookup|Check)/;

const context = () => ({ ids: randomIds, nowMs: Date.now() });

let harness: Harness;
let client: RawClient;
let root: string;
let nobody: string;
/** The tokens of the callers, by what their methods need. */
const tokens = new Map<string, Promise<string>>();

before(async () => {
  harness = await startHarness();
  client = rawGrpc(harness.url);
  root = (await harness.organisation("ours")).group;
  nobody = (await harness.identity()).token;
});
after(async () => {
  client.close();
  await harness.stop();
});

// With the functions of `arbor admin roles create` and `arbor admin bind`.
async function makeCaller(capabilities: readonly string[], isViewer: boolean): Promise<string> {
  const { uid: identity, token } = await harness.identity();
  await harness.app.installation.store.write(async (tx) => {
    if (isViewer) await bindIdentity(tx, { identity, role: builtinRoleUid("viewer"), group: root }, context());
    if (capabilities.length === 0) return;
    const { uid: role } = await createOperatorRole(tx, { name: "operator", description: "", capabilities }, context());
    await bindIdentity(tx, { identity, role, group: root, internal: true }, context());
  });
  return token;
}

function callerFor(method: DescMethodUnary): Promise<string> {
  const capabilities = readCapabilities(method).map(({ name }) => name);
  const isViewer = ALSO_VIEWER.test(nameOf(method));
  const key = `${capabilities.join()} ${isViewer}`;
  const known = tokens.get(key) ?? makeCaller(capabilities, isViewer);
  tokens.set(key, known);
  return known;
}

/** What all calls are about that change nothing. */
let shared: Promise<Placed> | undefined;

function insertSubjects(): Promise<Placed> {
  const group = randomIds.newUid(root);
  return harness.app.installation.store.write((tx) => insertGroup(tx, group, { name: "n", text: "t" }));
}

// Something that no other call is about where calls may change or delete it.
async function createSubject(method: DescMethodUnary): Promise<string> {
  if (!READ.test(method.name)) return subjectOf(method, await insertSubjects());
  shared ??= insertSubjects();
  return subjectOf(method, await shared);
}

// The stable names of version 2 have the rules and the handlers of its beta, which the matrix shows.
const called = methods.filter(({ parent }) => isCampaign || !parent.typeName.includes(".v2."));

describe("every served method", () => {
  for (const method of called.filter(({ parent }) => parent !== BindingsService)) {
    const needed = readCapabilities(method).map(({ name }) => name);
    it(`${nameOf(method)} is callable with ${needed.join(" and ") || "any token"}`, async () => {
      const request = requestAt(method, await createSubject(method));
      if (needed.length > 0 && findScopeField(method).length > 0) {
        const { code, bytes } = await client.call(method, request, nobody);
        assert.equal(code, "PERMISSION_DENIED", bytes);
      }
      const { code, bytes } = await client.call(method, request, await callerFor(method));
      if (isUnavailable(method)) assert.equal(code, "UNIMPLEMENTED", bytes);
      else assert.doesNotMatch(code, /^(PERMISSION_DENIED|UNAUTHENTICATED|UNIMPLEMENTED|INTERNAL|UNKNOWN)$/, bytes);
    });
  }

  it("on one's own bindings needs no role, and a binding that the operator made with a usual one", async () => {
    const { uid: identity, token } = await harness.identity();
    const binding = { identity, role: builtinRoleUid("viewer"), group: root };
    const uid = await harness.app.installation.store.write((tx) => bindIdentity(tx, binding, context()));
    const { listBindings, acceptBinding, dropBinding } = BindingsService.method;
    for (const method of [listBindings, acceptBinding, dropBinding]) {
      const { code, bytes } = await client.call(
        method,
        requestOf(method, method === listBindings ? {} : { uid }),
        token,
      );
      assert.equal(code, "OK", bytes);
    }
  });

  it("is tested here, and is unavailable only as documented", () => {
    const served = services.flatMap(({ desc }) => desc.methods);
    assert.deepEqual(new Set(served), new Set(methods));
    const isOfVersion1 = ({ parent }: DescMethodUnary) => !/\.v2(?:beta1)?\./.test(parent.typeName);
    const unavailable = methods.filter(isUnavailable);
    for (const [page, some] of [
      ["docs/v1.md", unavailable.filter(isOfVersion1)],
      ["docs/api-rules.md", unavailable.filter((method) => !isOfVersion1(method))],
    ] as const) {
      const documented = listUnavailable(page).map(([name]) => name);
      assert.ok(documented.length > 3);
      const names = new Set(some.map(({ name, parent }) => `${parent.name}.${name}`));
      assert.deepEqual([...names].sort(), documented.sort(), page);
    }
  });
});
