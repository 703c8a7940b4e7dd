// Nothing one organisation wrote ever reaches another, whatever that one asks.
import assert from "node:assert/strict";
import { after, before, describe, it, mock } from "node:test";
import { type DescMessage, type DescMethodUnary, ScalarType } from "@bufbuild/protobuf";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { builtinIdentityUid, builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { Caller } from "../../src/pipeline/auth/caller.js";
import { clientsFor, type RawClient, rawGrpc, rawRest, requestOf } from "../contract/iam-clients.js";
import {
  methods as all,
  findScopeField,
  isUnavailable,
  nameOf,
  requestAt,
  subjectOf,
} from "../contract/iam-methods.js";
import { imageDigest } from "../contract/registry-things.js";
import { type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import type { Harness } from "../support/harness.js";
import { isCampaign, sample } from "../support/scale.js";
import { insertGroup, type Placed, populate } from "./populate.js";

const MARK = "zqxmarkb";
const viewer = builtinRoleUid("viewer");

let world: ExchangeWorld;
let harness: Harness;
let clients: readonly RawClient[];
/** What `a` has, and what `b` has in its root and in a group below it. */
let a: Placed;
let b: readonly Placed[];
const tokens = { a: "", b: "" };
let ownersOfB: readonly string[];
/** The group of a third organisation, which the operator shows to all. */
const catalogue = randomIds.newUid();
/** Identities that tokens of one issuer may assume, each by its own subject. */
let assumable: { readonly a: string; readonly b: string };

before(async () => {
  world = await startExchangeWorld({ catalogGroup: catalogue });
  ({ harness } = world);
  clients = [rawRest(harness.url), rawGrpc(harness.url)];
  const [ours, theirs] = [await harness.organisation("tenant a"), await harness.organisation(`${MARK} org`)];
  Object.assign(tokens, { a: ours.token, b: theirs.token });
  ownersOfB = [theirs.identity, builtinIdentityUid(`owner@${theirs.group}`)];
  const { issuer } = world.workloads;
  const ofB = { name: MARK, relation: 1, relationship: { claimMatch: { issuer, subject: MARK } } };
  assumable = {
    a: await world.workload("a", { group: ours.group }),
    b: (await harness.identity(ofB, theirs.group)).uid,
  };
  const marked = { name: `${MARK} name`, text: MARK };
  [a, b] = await harness.app.installation.store.write(async (tx) => [
    await populate(tx, ours.group, { name: "a", text: "a" }),
    [await populate(tx, theirs.group, marked), await insertGroup(tx, randomIds.newUid(theirs.group), marked)],
  ]);
  await harness.app.installation.store.write((tx) => insertGroup(tx, catalogue, { name: "shared", text: "shared" }));
});

after(async () => {
  for (const client of clients) client.close();
  await world.stop();
});

/** A call, ready to be sent. */
interface Prepared {
  readonly method: DescMethodUnary;
  readonly request: object;
}

// The stable names of version 2 are decided on and answered like those of its beta, which the matrix shows.
const methods = all.filter(({ parent }) => !parent.typeName.includes(".v2."));
// These answer numbers, flags, uids and digests alone, or data of a registry, and there is no registry. What is placed has
// neither conditions nor a guard: test/issuer/trust.test.ts has those of another organisation.
const NO_TEXT =
  /TrustService\.Get|TemporaryBindingsService\.|Registry\.(GetRepoCountBySource|GetManifestDigestCount|GetRegistrySettings|GetSize|ListTagHistory|GetUpdateStatus|GetImageConfig)$/;
// This shows the group that the operator has chosen, whoever asks.
const isCatalogue = ({ name }: DescMethodUnary) => name === "ListCatalogImages";
const tellsNoText = (method: DescMethodUnary) =>
  isUnavailable(method) || isCatalogue(method) || NO_TEXT.test(nameOf(method));

const lists = methods.filter(({ name }) => name.startsWith("List"));
const uidsOf = (placed: Placed) => [...new Set(Object.values(placed))];

// What is placed: in a campaign all, otherwise one of each kind, of the groups in turn.
function chooseUids(of: readonly Placed[], index: number): string[] {
  return of.flatMap((placed, i) => uidsOf(placed).filter((_, j) => isCampaign || (index + i + j) % of.length === 0));
}

// Every list with every filter it has, each filled with everything of the other's that could be in it.
function listCalls(of: readonly Placed[], at: Placed): Prepared[] {
  const uids = of.flatMap(uidsOf);
  const filters = (message: DescMessage, row: number): object[] =>
    message.fields.flatMap((field, column): object[] => {
      const isList = field.fieldKind === "list";
      const fillField = (value: unknown) => ({ [field.localName]: isList ? [value] : value });
      if (field.name === "uidp") {
        const parents: object[] = chooseUids(of, row).flatMap((uid, round) =>
          sample([{ ancestorsOf: uid }, { descendantsOf: uid }, { childrenOf: uid }, { ids: [uid] }], row + round),
        );
        for (const { group } of of) parents.push({ childrenOf: group }, { descendantsOf: group });
        return [...parents, { ids: uids }, { inRoot: true }, { childrenOf: "/" }].map((uidp) => ({ uidp }));
      }
      if (field.name === "name") return [`${MARK} name`, `${MARK} org`, MARK].map((name) => ({ name }));
      if (field.name === "order_by" && !field.enum)
        return ["uid", "name", "created_at desc", "group"].map((orderBy) => ({ orderBy }));
      if (field.name === "page_size") return [{ pageSize: 1 }, { pageSize: 200 }, { pageSize: 200, skip: 1 }];
      if (field.enum) return field.enum.values.map(({ number }) => fillField(number));
      if (field.name === "page_token" || field.name === "skip") return [];
      if (field.name === "digest") return [fillField(imageDigest)];
      if (field.scalar === ScalarType.BOOL) return [fillField(true)];
      if (field.message) return [fillField({ seconds: 0n })];
      if (isList) return [{ [field.localName]: [MARK, ...uids] }];
      if (/^(query|origin)$/.test(field.name)) return [fillField(MARK)];
      // Every sixth, but in a campaign.
      return uids.filter((_, i) => isCampaign || (i + row + column) % 6 === 0).map(fillField);
    });
  return lists.flatMap((method, row) => {
    const parent = findScopeField(method).length > 0;
    const scopes = parent ? [at, ...of].map(({ group }) => ({ group })) : [{}];
    return scopes.flatMap((scope) =>
      [scope, ...filters(method.input, row).map((filter) => ({ ...filter, ...scope }))].map((request) => ({
        method,
        request,
      })),
    );
  });
}

// Everything that is about one thing, about each thing of the other's.
function foreignCalls(of: readonly Placed[]): Prepared[] {
  const placed = methods.filter((method) => findScopeField(method).length > 0);
  return of.flatMap((one, i) =>
    placed.flatMap((method, row) =>
      uidsOf(one)
        // Uids of the kinds that a method is not about: every eighth, but in a campaign.
        .filter((_, column) => isCampaign || (row + column + 4 * i) % 8 === 0)
        .concat(subjectOf(method, one))
        .map((uid) => ({ method, request: requestAt(method, uid, MARK) })),
    ),
  );
}

// Writes in one's own group that name what is the other's wherever a uid goes.
function namingCalls(of: readonly Placed[], at: Placed): Prepared[] {
  const method = (name: string) => {
    const found = methods.find((one) => one.name === name);
    assert.ok(found);
    return found;
  };
  const oidc = { issuer: "https://login.example", clientId: "id", clientSecret: "s" };
  const configuration = { case: "oidc", value: oidc };
  const identityUid = builtinIdentityUid("anonymous");
  const ttl = { seconds: 60n };
  const callsWith = (uid: string): Prepared[] => [
    {
      method: method("CreateRoleBinding"),
      request: { parent: at.group, roleBinding: { identityUid: uid, roleUid: viewer } },
    },
    { method: method("CreateRoleBinding"), request: { parent: at.group, roleBinding: { identityUid, roleUid: uid } } },
    { method: method("UpdateRoleBinding"), request: { roleBinding: { uid: at.roleBinding, identityUid: uid } } },
    { method: method("UpdateRoleBinding"), request: { roleBinding: { uid: at.roleBinding, roleUid: uid } } },
    {
      method: method("BatchCreateRoleBindings"),
      request: {
        parent: at.group,
        roleUid: viewer,
        requests: [{ roleBinding: { identityUid: uid } }, { parent: uid, roleBinding: { identityUid: uid } }],
      },
    },
    {
      method: method("BatchCreateRoleBindings"),
      request: { parent: at.group, roleUid: uid, requests: [{ roleBinding: { identityUid } }] },
    },
    { method: method("CreateGroupInvite"), request: { parent: at.group, groupInvite: { roleUid: uid, ttl } } },
    {
      method: method("CreateIdentityProvider"),
      request: { parent: at.group, identityProvider: { name: "n", defaultRole: uid, configuration } },
    },
    {
      method: method("UpdateIdentityProvider"),
      request: { identityProvider: { uid: at.identityProvider, defaultRole: uid } },
    },
    {
      method: method("CreateExternalGroupRoleMapping"),
      request: {
        parent: at.identityProvider,
        externalGroupRoleMapping: { externalGroupId: "g", roleUid: uid, scope: at.group },
      },
    },
    {
      method: method("CreateExternalGroupRoleMapping"),
      request: {
        parent: at.identityProvider,
        externalGroupRoleMapping: { externalGroupId: "g", roleUid: viewer, scope: uid },
      },
    },
    { method: method("BatchDeleteExternalGroupRoleMappings"), request: { parent: at.identityProvider, names: [uid] } },
    {
      method: method("UpdateAccountAssociation"),
      request: { accountAssociation: { uid: at.group, chainguard: { serviceBindings: { INGESTER: uid } } } },
    },
    ...[uid, `${MARK} name`].map((overlay) => ({
      method: method("CreateOverlayBinding"),
      request: { parent: at.repo, overlay, tagSelector: { kind: 2 } },
    })),
    ...[uid, `${uid}/${MARK}`, `registry.example/${uid}/${MARK}:${MARK}`].flatMap((source): Prepared[] => [
      { method: method("CreateRepo"), request: { parent: at.group, repo: { name: "copy", syncConfig: { source } } } },
      { method: method("UpdateRepo"), request: { repo: { uid: at.repo, name: "a", syncConfig: { source } } } },
    ]),
    { method: method("RequestGroupAccess"), request: { groupUid: uid } },
    {
      method: method("UpdateGroup"),
      request: { group: { uid: at.group, name: "a" }, updateMask: { paths: [`name`] } },
    },
    { method: method("LookupIdentity"), request: { issuer: "https://issuer.example", subject: uid } },
  ];
  // Every other call with the one half of the uids, the others with the other half; in a campaign each half is all.
  return [0, 1].flatMap((half) =>
    [...chooseUids(of, half), ...ownersOfB].flatMap((uid) => callsWith(uid).filter((_, j) => j % 2 === half)),
  );
}

async function leaks(calls: readonly Prepared[], token: string): Promise<{ found: string[]; sent: number }> {
  const found: string[] = [];
  let sent = 0;
  for (const [round, { method, request }] of calls.entries()) {
    const message = requestOf(method, request);
    for (const { name, call } of sample(clientsFor(method, clients), round)) {
      sent++;
      const { bytes, code } = await call(method, message, token);
      assert.ok(
        !/^(INTERNAL|UNKNOWN|UNAUTHENTICATED)$/.test(code),
        `${method.name} ${JSON.stringify(message, plain)}: ${bytes}`,
      );
      if (bytes.includes(MARK)) found.push(`${name} ${nameOf(method)} ${JSON.stringify(request, plain)}`);
    }
  }
  return { found, sent };
}

function plain(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

describe("what another organisation wrote", () => {
  it("is in no answer to a list, with any filter", async (t) => {
    const { found, sent } = await leaks(listCalls(b, a), tokens.a);
    t.diagnostic(`${sent} calls`);
    assert.deepEqual(found, []);
  });

  it("is not in the catalogue, which shows both the group of the operator and nothing else", async () => {
    for (const method of methods.filter(isCatalogue)) {
      for (const client of clients) {
        const request = requestOf(method, {});
        const [one, other] = [
          await client.call(method, request, tokens.a),
          await client.call(method, request, tokens.b),
        ];
        assert.equal(one.code, "OK");
        assert.deepEqual(one.bytes, other.bytes);
        assert.ok(one.bytes.includes("shared"), one.bytes);
        for (const uid of [a, ...b].flatMap(uidsOf)) assert.ok(!one.bytes.includes(uid), one.bytes);
      }
    }
  });

  it("is in no answer to a call about what is theirs", async (t) => {
    const { found, sent } = await leaks(foreignCalls(b), tokens.a);
    t.diagnostic(`${sent} calls`);
    assert.deepEqual(found, []);
  });

  it("is in no answer to a write that names what is theirs", async (t) => {
    const { found, sent } = await leaks(namingCalls(b, a), tokens.a);
    t.diagnostic(`${sent} calls`);
    assert.deepEqual(found, []);
  });

  // Those of the services by which callers become known, as far as uids go.
  function signInCalls(of: readonly Placed[]): (Prepared & { readonly bearer: string; readonly code: RegExp })[] {
    const { exchange } = SecurityTokenService.method;
    const { register, delete: forget, validate } = Auth.method;
    const bearer = world.token({ sub: "a" });
    const aud = [world.url];
    const denied = /^PERMISSION_DENIED$/;
    const calls = [...new Set([...of.flatMap(uidsOf), ...ownersOfB, assumable.b])].flatMap((uid) => [
      { method: exchange, request: { aud, identity: uid }, bearer, code: denied },
      { method: exchange, request: { aud, identity: assumable.a, scopes: [uid] }, bearer, code: /^OK$/ },
      { method: exchange, request: { aud, identityProvider: uid }, bearer, code: /^UNAUTHENTICATED$/ },
      { method: register, request: { code: "code", identityId: uid }, bearer, code: denied },
      { method: forget, request: { id: uid }, bearer: tokens.a, code: denied },
    ]);
    return [...calls, { method: validate, request: {}, bearer: tokens.a, code: /^OK$/ }];
  }

  // The text of a response, and the claims of the tokens in it.
  function readable(bytes: string): string {
    const parts = [...bytes.matchAll(/ey[\w-]+\.(ey[\w-]+)\./g)].map(([, part = ""]) => part);
    return [bytes, ...parts.map((part) => Buffer.from(part, "base64url").toString())].join("\n");
  }

  it("is in no answer of the services by which callers become known, nor in their tokens", async (t) => {
    const calls = signInCalls(b);
    t.diagnostic(`${calls.length} calls`);
    for (const [round, { method, request, bearer, code }] of calls.entries()) {
      for (const client of sample(clients, round)) {
        const response = await client.call(method, requestOf(method, request), bearer);
        assert.match(response.code, code, `${client.name} ${method.name} ${JSON.stringify(request)}`);
        const text = readable(response.bytes);
        assert.ok(!text.includes(MARK), `${client.name} ${method.name} ${JSON.stringify(request)}: ${text}`);
        const [token] = /ey[\w-]+\.ey[\w-]+\.[\w-]+/.exec(response.bytes) ?? [];
        if (token === undefined) continue;
        const told = await client.call(Auth.method.validate, requestOf(Auth.method.validate, {}), token);
        assert.equal(told.code, "OK");
        assert.ok(!told.bytes.includes(MARK), told.bytes);
      }
    }
  });

  it("is in the answers of those services to whom it belongs", async () => {
    const { exchange } = SecurityTokenService.method;
    const { validate } = Auth.method;
    for (const client of clients) {
      const request = requestOf(exchange, { aud: [world.url], identity: assumable.b });
      const exchanged = await client.call(exchange, request, world.token({ sub: MARK }));
      assert.ok(readable(exchanged.bytes).includes(MARK), exchanged.bytes);
      const { bytes } = await client.call(validate, requestOf(validate, {}), tokens.b);
      assert.ok(bytes.includes(MARK), bytes);
    }
  });

  it("is still all there: its owner sees the mark in every kind", async () => {
    const seen = new Set<string>();
    const reads = methods.filter((method) => /^(Get|List)/.test(method.name) && !tellsNoText(method));
    for (const method of reads) {
      for (const one of b) {
        const placed = findScopeField(method).length > 0;
        const request = placed ? requestAt(method, subjectOf(method, one), MARK) : requestOf(method, {});
        for (const { name, call } of clients) {
          const { bytes } = await call(method, request, tokens.b);
          if (bytes.includes(MARK)) seen.add(`${name} ${nameOf(method)}`);
        }
      }
    }
    const expected = reads.flatMap((method) => clients.map((client) => `${client.name} ${nameOf(method)}`));
    assert.deepEqual([...seen].sort(), expected.sort());
  });

  it("would be found if lists showed every organisation", async () => {
    const everything = mock.method(Caller.prototype, "visibleGroups", () => [a.group, b[0]?.group ?? ""].sort());
    // What the caller itself is bound to does not follow from what it sees.
    const unscoped = lists.filter(
      (method) =>
        findScopeField(method).length === 0 && !tellsNoText(method) && method.parent.name !== "BindingsService",
    );
    const { found } = await leaks(
      unscoped.map((method) => ({ method, request: {} })),
      tokens.a,
    );
    everything.mock.restore();
    for (const name of unscoped.map(nameOf))
      assert.ok(
        found.some((one) => one.includes(` ${name} `)),
        `${name} showed nothing`,
      );
  });

  it("would be found if any caller held anything anywhere", async () => {
    const everything = mock.method(Caller.prototype, "holds", () => true);
    const { found } = await leaks(
      foreignCalls(b.slice(0, 1)).filter(({ method }) => method.name.startsWith("Get")),
      tokens.a,
    );
    everything.mock.restore();
    for (const name of methods.filter((one) => one.name.startsWith("Get") && !tellsNoText(one)).map(nameOf)) {
      assert.ok(
        found.some((one) => one.includes(` ${name} `)),
        `${name} showed nothing`,
      );
    }
  });
});
