// The limits of tokens: `cap` and `scope` take away from what the store grants,
// in every place and every way of asking, and never give.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { GetGroupRequestSchema, ListGroupsRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { toCapabilitySet } from "../../src/kernel/capability-set.js";
import { ApiError } from "../../src/kernel/errors.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { signJwt } from "../../src/kernel/jws.js";
import type { Principal } from "../../src/kernel/principal.js";
import { encodeApiToken, verifyApiToken } from "../../src/pipeline/auth/api-token.js";
import { authorize, bitOf, type Guard } from "../../src/pipeline/auth/authorize.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { notPermitted, permissionDenied } from "../contract/expectations.js";
import { newDataDir } from "../support/data-dir.js";
import { bindingRow, groupRow, identityRow, roleRow } from "../support/rows.js";
import { chooseScale } from "../support/scale.js";
import { type Answer, ask } from "./sts/ask.js";
import { type ExchangeWorld, type Parameters, startExchangeWorld } from "./sts/exchange-world.js";

const pool = [
  Capability.CAP_IAM_GROUPS_LIST,
  Capability.CAP_IAM_GROUPS_CREATE,
  Capability.CAP_IAM_ROLE_BINDINGS_CREATE,
  Capability.CAP_REPO_LIST,
].map((capability) => ({ bit: bitOf(capability), name: Capability[capability] ?? "" }));

/** A tree by the index of each group's parent, what is bound where, and the limit of a token. */
interface Case {
  readonly parents: readonly number[];
  readonly bindings: readonly { readonly group: number; readonly capabilities: readonly number[] }[];
  readonly cap: readonly number[] | undefined;
  readonly scope: readonly number[] | undefined;
}

const RUNS = chooseScale(250, 100);
const MAX_GROUPS = 12;
const index = fc.nat({ max: MAX_GROUPS - 1 });
const someOfPool = fc.uniqueArray(fc.nat({ max: pool.length - 1 }));
const cases: fc.Arbitrary<Case> = fc.record({
  // Below a group that was made before, or a root of its own.
  parents: fc.array(fc.integer({ min: -1, max: MAX_GROUPS }), { minLength: 3, maxLength: MAX_GROUPS }),
  bindings: fc.array(fc.record({ group: index, capabilities: someOfPool }), { maxLength: 6 }),
  cap: fc.option(someOfPool, { nil: undefined }),
  scope: fc.option(fc.uniqueArray(index, { minLength: 1, maxLength: 4 }), { nil: undefined }),
});

/** What should be allowed, in the plainest terms: sets and "is above", as facts of the published service have it. */
function isAllowed({ parents, bindings, cap, scope }: Case, capability: number, group: number): boolean {
  const above = (at: number): number[] => {
    const parent = parentOf(parents, at);
    return parent === undefined ? [at] : [at, ...above(parent)];
  };
  if (cap !== undefined && !cap.includes(capability)) return false;
  const capabilitiesAt = (at: number) =>
    bindings.some(
      (binding) => above(at).includes(binding.group % parents.length) && binding.capabilities.includes(capability),
    );
  if (scope === undefined) return capabilitiesAt(group);
  return scope.some((one) => above(group).includes(one % parents.length) && capabilitiesAt(one % parents.length));
}

function parentOf(parents: readonly number[], at: number): number | undefined {
  const parent = parents[at] ?? -1;
  return at === 0 || parent < 0 ? undefined : parent % at;
}

describe("any tree, any bindings and any limit", () => {
  let store: Store;
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  before(() => {
    store = openSqlite({ directory: newDataDir(), clock: () => 0, exclusive: false });
  });
  after(() => store.close());

  const guardOf = (capability: number, isScoped: boolean): Guard => {
    const capabilities = pool.slice(capability, capability + 1);
    const of = (request: unknown) => (request as { uid: string }).uid;
    return { capabilities, ...(isScoped && { scope: { field: "uid", of } }) };
  };

  async function build({ parents, bindings }: Case): Promise<{ identity: string; uids: string[] }> {
    const uids: string[] = [];
    for (const [at] of parents.entries()) {
      const parent = parentOf(parents, at);
      uids.push(randomIds.newUid(parent === undefined ? undefined : uids[parent]));
    }
    const identity = randomIds.newUid();
    await store.write(async (tx) => {
      for (const uid of uids) await tx.table(groupKind).insert(groupRow(uid));
      await tx.table(identityKind).insert(identityRow(identity));
      for (const { group, capabilities } of bindings) {
        const role = randomIds.newUid();
        const at = randomIds.newUid(uids[group % uids.length]);
        const bits = capabilities.map((one) => pool[one]?.bit ?? -1);
        await tx.table(roleKind).insert(roleRow(role, { capabilities: toCapabilitySet(bits) }));
        await tx.table(roleBindingKind).insert(bindingRow(at, identity, role));
      }
    });
    return { identity, uids };
  }

  // By way of a real token, which must carry all of it.
  async function principalOf(identity: string, { cap, scope }: Case, uids: readonly string[]): Promise<Principal> {
    const limit = {
      ...(cap && { cap: toCapabilitySet(cap.map((one) => pool[one]?.bit ?? -1)) }),
      ...(scope && { scope: scope.map((one) => uids[one % uids.length] ?? "") }),
    };
    const claims = {
      issuer: "https://i",
      audience: "https://a",
      subject: identity,
      tokenId: "t",
      issuedAt: 1_000,
      lifeS: 60,
    };
    const limited = { ...claims, ...(Object.keys(limit).length > 0 && { limit }) };
    const token = await signJwt(encodeApiToken(limited, { kid: "k", key: privateKey }));
    const policy = { issuer: "https://i", audiences: ["https://a"] };
    const principal = verifyApiToken(token, publicKey, policy, 1_000_000);
    assert.ok(typeof principal === "object", "the service takes it");
    return principal;
  }

  it("allow exactly what the store grants less what the limit takes", async () => {
    let [granted, rejected] = [0, 0];
    const property = fc.asyncProperty(cases, async (one) => {
      const { identity, uids } = await build(one);
      const principal = await principalOf(identity, one, uids);
      for (let capability = 0; capability < pool.length; capability++) {
        const expected = uids.filter((_, group) => isAllowed(one, capability, group));
        const found = await store.read(async (tx) => {
          const at: string[] = [];
          for (const uid of uids) {
            const request = create(GetGroupRequestSchema, { uid });
            try {
              await authorize(guardOf(capability, true), principal, request, tx);
              at.push(uid);
            } catch (error) {
              assert.ok(error instanceof ApiError && error.reason === "PERMISSION_DENIED", String(error));
            }
          }
          const everywhere = await authorize(
            guardOf(capability, false),
            principal,
            create(ListGroupsRequestSchema),
            tx,
          );
          const visible = everywhere.visibleGroups();
          const listed = uids.filter((uid) => visible.some((top) => `${uid}/`.startsWith(`${top}/`)));
          return { at, listed, holds: uids.filter((uid) => everywhere.holdsNeeded(uid)) };
        });
        assert.deepEqual(found, { at: expected, listed: expected, holds: expected });
        granted += expected.length;
        rejected += uids.length - expected.length;
      }
    });
    await fc.assert(property, { numRuns: RUNS });
    assert.ok(granted > 2 * RUNS && rejected > 2 * RUNS, `${granted} granted, ${rejected} rejected`);
  });
});

describe("a limited token", () => {
  let world: ExchangeWorld;
  let identity: string;
  let [child, beside] = ["", ""];
  before(async () => {
    world = await startExchangeWorld();
    child = randomIds.newUid(world.root);
    beside = randomIds.newUid(world.root);
    await world.write(async (tx) => {
      for (const uid of [child, beside]) await tx.table(groupKind).insert(groupRow(uid));
    });
    identity = await world.workload("ci", { role: "owner" });
  });
  after(() => world.stop());

  const issueLimited = (parameters: Parameters) =>
    world.exchangeToken({ identity, ...parameters }, world.token({ sub: "ci" }));
  const call = (bearer: string, method: string, path: string, json?: object): Promise<Answer> =>
    ask(world.url, `/iam/v2beta1${path}`, { method, bearer, ...(json && { json }) });

  it("reads and changes its groups and their descendants", async () => {
    const token = await issueLimited({ scope: child });
    const { json } = await call(token, "GET", "/groups");
    assert.deepEqual(
      (json.groups as { uid: string }[]).map(({ uid }) => uid),
      [child],
    );
    assert.equal((await call(token, "POST", `/groups/${child}`, { name: "made" })).status, 200);
    for (const group of [beside, world.root]) {
      assert.deepEqual(
        (await call(token, "GET", `/groups/${group}`)).outcome,
        permissionDenied(`groups.list at ${group}`),
      );
      assert.equal((await call(token, "POST", `/groups/${group}`, { name: "made" })).status, 403);
    }
  });

  it("does what it names", async () => {
    const token = await issueLimited({ cap: ["groups.list"] });
    assert.equal((await call(token, "GET", `/groups/${child}`)).status, 200);
    assert.deepEqual(
      (await call(token, "POST", `/groups/${child}`, { name: "x" })).outcome,
      permissionDenied(`groups.create at ${child}`),
    );
    assert.equal((await call(token, "GET", "/identities")).json.totalCount, "0");
  });

  it("with another organisation's groups has no access", async () => {
    const token = await issueLimited({ scope: world.foreign });
    for (const group of [world.foreign, world.root, child])
      assert.equal((await call(token, "GET", `/groups/${group}`)).status, 403);
    assert.deepEqual((await call(token, "GET", "/groups")).json.totalCount, "0");
  });

  it("grants no more than its own limit", async () => {
    const cap = [
      "role_bindings.create",
      "roles.create",
      "roles.list",
      "group_invites.create",
      "identity.update",
      "groups.list",
    ];
    const token = await issueLimited({ cap });
    const { uid: somebody } = await world.person("somebody");
    const [viewer, pull] = ["viewer", "registry.pull"].map(builtinRoleUid);
    const attempts: readonly [method: string, path: string, json: object][] = [
      ["POST", `/roleBindings/${world.root}`, { identityUid: somebody, roleUid: viewer }],
      ["POST", `/roleBindings/${world.root}`, { identityUid: identity, roleUid: pull }],
      ["POST", `/groupInvites/${world.root}`, { roleUid: viewer, ttl: "60s" }],
      ["POST", `/roles/${world.root}`, { name: "more", capabilities: ["CAP_IAM_GROUPS_DELETE"] }],
      // What it holds as an owner it does not hold by this token.
      ["PATCH", `/identities/${identity}`, { claimMatch: { issuer: world.workloads.issuer, subject: "mallory" } }],
    ];
    for (const [method, path, json] of attempts) {
      const { status, text } = await call(token, method, path, json);
      assert.equal(status, 403, `${method} ${path}: ${text}`);
      assert.equal(
        (await call(await issueLimited({}), method, path, json)).status,
        200,
        `${method} ${path} is else allowed`,
      );
      if (method === "PATCH")
        await call(await world.harness.token(identity), method, path, {
          claimMatch: { issuer: world.workloads.issuer, subject: "ci" },
        });
    }
    const role = { name: "no more", capabilities: ["CAP_IAM_GROUPS_LIST"] };
    assert.equal((await call(token, "POST", `/roles/${world.root}`, role)).status, 200);
  });

  it("creates no organisation and accepts no other word for itself", async () => {
    const { uid } = await world.person("founder");
    const createRoot = (bearer: string) =>
      ask(world.url, "/chainguard.platform.iam.v2beta1.GroupsService/CreateGroup", {
        method: "POST",
        json: { group: { name: "new" } },
        bearer,
      });
    for (const parameters of [{ cap: ["groups.create", "groups.list"] }, { scope: world.root }] as Parameters[]) {
      const token = await world.exchangeToken(parameters, world.idToken({ sub: "founder" }));
      const { status, json } = await createRoot(token);
      assert.deepEqual([status, json.code], [403, "permission_denied"]);
      assert.match(String(json.message), /root groups are created with a token that is not limited$/);
      const listed = await ask(world.url, "/bindings/v1/bindings", { bearer: token });
      assert.deepEqual(listed.outcome, notPermitted("listing bindings needs a token that is not limited"));
      // It is no proof for another token, which might have no limit.
      assert.equal((await world.exchange({}, token)).status, 401);
      assert.equal((await world.exchange({ identity: uid }, token)).status, 401);
    }
    assert.equal((await createRoot(await world.exchangeToken({}, world.idToken({ sub: "founder" })))).status, 200);
  });
});
