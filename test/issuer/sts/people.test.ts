// People exchange tokens of those who know them: login providers of the service,
// and organisations' own, whose people are somebody else.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import { Code } from "@connectrpc/connect";
import { buildCapabilitySet } from "../../../src/iam/roles/capability-names.js";
import { builtinRoleUid, personUid, providerPersonUid, randomIds } from "../../../src/kernel/ids.js";
import { groupMappingKind } from "../../../src/store/iam/group-mappings.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { roleKind } from "../../../src/store/iam/roles.js";
import {
  type Expected,
  FOR_OTHERS,
  invalid,
  notPermitted,
  precondition,
  unauthenticated,
} from "../../contract/expectations.js";
import { bindingRow, groupRow, roleRow } from "../../support/rows.js";
import { invite } from "../auth-world.js";
import { exchangerOf } from "../mutations/exchanger.js";
import { type Answer, ask } from "./ask.js";
import { CLIENT, claimsOf, dumpOf, type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";
import { makeProvider, type ProviderKit } from "./provider-people.js";

const UNKNOWN_PERSON = notPermitted("Identity not found: you have no account here, and need an invite");
const UNKNOWN_MEMBER = notPermitted("Identity not found: sign in with a browser first");

let world: ExchangeWorld;
before(async () => {
  world = await startExchangeWorld();
});
after(() => world.stop());

const call = (path: string, bearer: string, method = "GET", json?: object): Promise<Answer> =>
  ask(world.url, `/iam/v2beta1${path}`, { method, bearer, ...(json && { json }) });

describe("a login provider of the service", () => {
  before(() => world.person("alice", { email: "alice@example.org", name: "Alice" }));

  it("identifies people by issuer and subject", async () => {
    const profile = { name: "Alice", given_name: "A", family_name: "L", picture: "https://p.example/a.png" };
    const noise = { email: "mallory@example.org", email_verified: true, groups: ["admins"], roles: "owner" };
    const token = await world.exchangeToken({}, world.idToken({ sub: "alice", ...profile, ...noise }));
    const { sub, email, email_verified, upstream, act, iat, exp, jti, ...rest } = claimsOf(token);
    const hash = createHash("sha256").update(`arbor person ${JSON.stringify([world.people.issuer, "alice"])}`);
    assert.equal(sub, hash.digest("hex").slice(0, 40), "the uid follows from who it is");
    assert.deepEqual([email, email_verified, upstream], ["alice@example.org", true, profile]);
    assert.deepEqual(act, { iss: world.people.issuer, sub: "alice", aud: CLIENT, email: "alice@example.org" });
    assert.deepEqual(rest, { iss: world.url, aud: world.url });
    assert.equal((await ask(world.url, "/auth/v1/ok", { bearer: token })).status, 200);
  });

  const UNNAMED = invalid(["identity", "name the identity to assume"]);
  const UNNAMED_FOR_OTHERS = {
    ...UNNAMED,
    message: `Invalid argument: identity: name the identity to assume${FOR_OTHERS}`,
  };
  const cases: readonly [name: string, claims: () => Readonly<Record<string, unknown>>, expected: Expected | "OK"][] = [
    ["for its client", () => ({}), "OK"],
    ["for its client, and by it", () => ({ azp: CLIENT }), "OK"],
    ["for several, and by its client", () => ({ aud: ["x", CLIENT], azp: CLIENT }), "OK"],
    ["for another client", () => ({ aud: "another" }), unauthenticated(FOR_OTHERS)],
    ["for a client of a longer name", () => ({ aud: `${CLIENT}x` }), unauthenticated(FOR_OTHERS)],
    ["for us instead of its client", () => ({ aud: world.url }), unauthenticated()],
    ["for several, by nobody knows whom", () => ({ aud: ["x", CLIENT] }), unauthenticated()],
    ["for several, by another", () => ({ aud: ["x", CLIENT], azp: "x" }), unauthenticated()],
    ["for its client, by another", () => ({ azp: "x" }), unauthenticated()],
    ["by its client, for another", () => ({ aud: "x", azp: CLIENT }), unauthenticated(FOR_OTHERS)],
    ["with an azp that is no text", () => ({ azp: [CLIENT] }), unauthenticated()],
    ["with an azp of nothing", () => ({ azp: null }), unauthenticated()],
    ["of another issuer", () => ({ iss: "https://login.example" }), UNNAMED_FOR_OTHERS],
    ["of a like issuer", () => ({ iss: `${world.people.issuer}/` }), UNNAMED_FOR_OTHERS],
    ["of an issuer of workloads", () => ({ iss: world.workloads.issuer, aud: world.url }), UNNAMED],
    ["of an issuer of workloads, for others", () => ({ iss: world.workloads.issuer }), UNNAMED_FOR_OTHERS],
    ["of the service itself", () => ({ iss: world.url, aud: world.url }), unauthenticated()],
    ["for somebody unknown", () => ({ sub: "nobody" }), UNKNOWN_PERSON],
    ["for somebody in another case", () => ({ sub: "Alice" }), UNKNOWN_PERSON],
    ["that ran out", () => ({ exp: Math.floor(Date.now() / 1000) - 100 }), unauthenticated()],
  ];
  for (const [name, claims, expected] of cases) {
    it(`${expected === "OK" ? "and is believed with" : "but not with"} a token ${name}`, async () => {
      const stored = dumpOf(world.data);
      const { outcome } = await world.exchange({}, world.idToken({ sub: "alice", ...claims() }));
      assert.deepEqual(outcome.code === "OK" ? "OK" : outcome, expected);
      if (expected !== "OK") assert.deepEqual(dumpOf(world.data), stored, "nobody becomes known by an exchange");
    });
  }

  it("marks an unconfirmed email address as unverified", async () => {
    await world.person("bob", { email: "", emailUnverified: "bob@example.org" });
    const claims = claimsOf(await world.exchangeToken({}, world.idToken({ sub: "bob" })));
    assert.deepEqual([claims.email, claims.email_verified], ["bob@example.org", false]);
  });

  it("identifies nobody whose identity was deleted", async () => {
    const { uid } = await world.person("gone");
    const token = await world.exchangeToken({}, world.idToken({ sub: "gone" }));
    await world.write((tx) => tx.table(identityKind).delete(uid));
    assert.deepEqual((await world.exchange({}, world.idToken({ sub: "gone" }))).outcome, UNKNOWN_PERSON);
    assert.deepEqual((await ask(world.url, "/auth/v1/ok", { bearer: token })).outcome, unauthenticated());
  });
});

describe("an organisation's own provider", () => {
  let provider: ProviderKit;
  let carol: string;
  beforeEach(async () => {
    provider = await makeProvider(world);
    carol = await provider.signIn("carol", { email: "carol@example.org", email_verified: true });
  });
  const exchange = (claims: object, of = provider, parameter = "identity_provider") =>
    world.exchange({ [parameter]: of.uid }, of.token({ sub: "carol", ...claims }));

  it("identifies other people than the login provider of the same issuer", async () => {
    const { json } = await exchange({});
    assert.equal(claimsOf(String(json.token)).sub, carol);
    assert.equal(carol, providerPersonUid(provider.uid, world.people.issuer, "carol"));
    assert.notEqual(carol, personUid(world.people.issuer, "carol"));
    const other = await makeProvider(world);
    assert.notEqual(await other.signIn("carol"), carol, "nor is it the same through another provider");
    const claims = claimsOf(String((await exchange({}, provider, "identityProvider")).json.token));
    assert.deepEqual(
      [claims.email, claims.email_verified],
      ["carol@example.org", false],
      "its word on addresses does not count",
    );
  });

  it("does so under its own name, for its own client alone", async () => {
    const other = await makeProvider(world, {
      group: world.foreign,
      owner: world.foreignOwner,
      client: "client-of-theirs",
    });
    const rejected: readonly [string, Promise<Answer>, Expected][] = [
      ["without its name", world.exchange({}, provider.token({ sub: "carol" })), unauthenticated(FOR_OTHERS)],
      ["for the login provider's client", exchange({ aud: CLIENT }), unauthenticated()],
      [
        "for another's client",
        world.exchange({ identityProvider: other.uid }, provider.token({ sub: "carol" })),
        unauthenticated(),
      ],
      [
        "of another issuer",
        world.exchange({ identityProvider: provider.uid }, world.token({ sub: "carol", aud: provider.client })),
        unauthenticated(),
      ],
      ["somebody unknown", exchange({ sub: "dave" }), UNKNOWN_MEMBER],
      ["unknown there", world.exchange({ identityProvider: other.uid }, other.token({ sub: "carol" })), UNKNOWN_MEMBER],
      [
        "a provider that is none",
        world.exchange({ identityProvider: randomIds.newUid(world.root) }, provider.token({ sub: "carol" })),
        unauthenticated(),
      ],
      [
        "a group",
        world.exchange({ identityProvider: world.root }, provider.token({ sub: "carol" })),
        unauthenticated(),
      ],
    ];
    for (const [name, response, expected] of rejected) assert.deepEqual((await response).outcome, expected, name);
  });

  it("and as it is when the token is issued", async () => {
    const { installation } = world.harness.app;
    const exchanger = exchangerOf({ installation, url: world.url, trustedOrigins: [world.people.issuer] });
    const request = { aud: [world.url], cap: [], scopes: [], identity: "", identityProvider: provider.uid };
    const verified = await exchanger.verify(request, provider.token({ sub: "carol" }), undefined);
    const finish = async () => installation.store.read((tx) => exchanger.finish(tx, verified, undefined));
    assert.equal((await finish()).identityUid, carol);
    const before = await installation.store.read((tx) => tx.table(identityProviderKind).find(provider.uid));
    assert.ok(before, "the provider is there");
    for (const oidc of [
      { ...before.oidc, clientId: "another" },
      { ...before.oidc, issuer: "https://login.example" },
    ]) {
      await world.write((tx) => tx.table(identityProviderKind).replace({ ...before, oidc }));
      await assert.rejects(finish, { code: Code.Unauthenticated });
    }
    await world.write((tx) => tx.table(identityProviderKind).replace(before));
    assert.equal((await finish()).identityUid, carol);
    assert.equal((await call(`/identityProviders/${provider.uid}`, world.owner.token, "DELETE")).status, 200);
    await assert.rejects(finish, { code: Code.Unauthenticated });
  });

  it("gives its people its default role, and nothing anywhere else", async () => {
    const token = String((await exchange({})).json.token);
    assert.equal((await call(`/groups/${world.root}`, token)).status, 200);
    await world.harness.bind(carol, "owner", world.foreign);
    for (const [path, method, json] of [
      [`/groups/${world.foreign}`],
      [`/groups/${world.foreign}`, "POST", { name: "mine" }],
      [`/roleBindings/${world.foreign}`, "POST", { identityUid: carol, roleUid: builtinRoleUid("viewer") }],
    ] as const) {
      const { status, json: body } = await call(path, token, method, json);
      assert.deepEqual([status, body.code], [403, Code.PermissionDenied], `${method} ${path}`);
    }
    const root = { method: "POST", json: { group: { name: "a new organisation" } }, bearer: token };
    const created = await ask(world.url, "/chainguard.platform.iam.v2beta1.GroupsService/CreateGroup", root);
    assert.deepEqual([created.status, created.json.code], [403, "permission_denied"], "nor organisations of their own");
    const { json } = await call("/groups", token);
    const listed = (json.groups as { uid: string }[]).map(({ uid }) => uid);
    assert.ok(listed.includes(world.root) && !listed.includes(world.foreign), "lists show none of it");
    const capabilities = (await ask(world.url, "/auth/v1/ok", { bearer: token })).json.capabilities as {
      group: { id: string };
    }[];
    assert.deepEqual(
      capabilities.map(({ group }) => group.id),
      [world.root],
    );
    assert.deepEqual(Object.keys(claimsOf(token).cap as object), [world.root], "nor do tokens");
  });

  it("gives its default role for good to people who were bound to it before, with an end or without", async () => {
    for (const [subject, endTimeMs] of [
      ["bound-before", null],
      ["bound-for-a-while", Date.now() + 60_000],
      ["bound-once", Date.now() - 1],
    ] as const) {
      const uid = providerPersonUid(provider.uid, world.people.issuer, subject);
      const row = bindingRow(randomIds.newUid(world.root), uid, builtinRoleUid("viewer"), { pending: true, endTimeMs });
      await world.write((tx) => tx.table(roleBindingKind).insert(row));
      assert.equal(await provider.signIn(subject), uid);
      const bound = await world.write((tx) => tx.table(roleBindingKind).findByIdentity(uid));
      const expected = [{ roleUid: builtinRoleUid("viewer"), pending: false, endTimeMs: null }];
      assert.deepEqual(
        bound.map(({ roleUid, pending, endTimeMs: end }) => ({ roleUid, pending, endTimeMs: end })),
        expected,
        subject,
      );
    }
  });

  it("takes its people with it", async () => {
    const token = String((await exchange({})).json.token);
    const bound = await world.harness.bind(carol, "editor", world.root);
    assert.equal((await call(`/identityProviders/${provider.uid}`, world.owner.token, "DELETE")).status, 200);
    assert.deepEqual((await call("/groups", token)).outcome, unauthenticated());
    const { store } = world.harness.app.installation;
    const left = await store.read(async (tx) => [
      await tx.table(identityKind).find(carol),
      await tx.table(roleBindingKind).find(bound),
      ...(await tx.table(roleBindingKind).findByIdentity(carol)),
    ]);
    assert.deepEqual(left, [undefined, undefined]);
    assert.deepEqual((await exchange({})).outcome, unauthenticated());
  });

  it("but not where they are the last owners", async () => {
    const { group, identity, token } = await world.harness.organisation("with one owner");
    const own = await makeProvider(world, { group, owner: { uid: identity, token }, defaultRole: "owner" });
    const [erin] = [await own.signIn("erin"), await own.signIn("frank")];
    await world.write(async (tx) => {
      for (const { uid } of await tx.table(roleBindingKind).findByIdentity(identity))
        await tx.table(roleBindingKind).delete(uid);
    });
    const bearer = await world.harness.token(erin);
    const stored = dumpOf(world.data);
    const { outcome } = await call(`/identityProviders/${own.uid}`, bearer, "DELETE");
    assert.deepEqual(outcome, precondition("OWNER_REQUIRED", "a root group must keep an owner"));
    assert.deepEqual(dumpOf(world.data), stored, "all of them stay");
  });
});

describe("groups of a directory", () => {
  let provider: ProviderKit;
  let child: string;
  before(async () => {
    provider = await makeProvider(world, { defaultRole: "registry.pull" });
    child = randomIds.newUid(world.root);
    await world.write((tx) => tx.table(groupKind).insert(groupRow(child)));
    await provider.signIn("gina");
  });
  const tokenFor = async (claims: object, of = provider) => {
    const { status, json, text } = await world.exchange(
      { identity_provider: of.uid },
      of.token({ sub: "gina", ...claims }),
    );
    assert.equal(status, 200, text);
    return String(json.token);
  };
  const mayCreate = async (token: string) =>
    (await call(`/groups/${child}`, token, "POST", { name: "made" })).status === 200;
  /** A role that the mapped may create groups by; of its own, so that it can be deleted. */
  const newRole = async () => {
    const uid = randomIds.newUid(world.root);
    const capabilities = buildCapabilitySet(["groups.create", "groups.list"]);
    await world.write((tx) => tx.table(roleKind).insert(roleRow(uid, { groupUid: world.root, capabilities })));
    return uid;
  };

  const claims: readonly [groups: unknown, counts: boolean][] = [
    [["eng"], true],
    [["ops", "eng"], true],
    ["eng", true],
    [[], false],
    [undefined, false],
    [["ENG"], false],
    [["eng "], false],
    ["eng,ops", false],
    [{ eng: true }, false],
    [[["eng"]], false],
    [null, false],
  ];
  for (const [groups, counts] of claims) {
    it(`${JSON.stringify(groups)} ${counts ? "count" : "do not count"}`, async () => {
      const mapping = await provider.map("eng", await newRole());
      const token = await tokenFor({ groups });
      assert.equal(await mayCreate(token), counts);
      assert.deepEqual(claimsOf(token).map, counts ? [mapping] : undefined);
      await call(`/externalGroupRoleMappings/${mapping}`, world.owner.token, "DELETE");
    });
  }

  it("let a token name the organisation, for people who hold nothing else there", async () => {
    const uid = await provider.signIn("hana");
    const { group } = await world.harness.organisation("mapped.example");
    await world.write(async (tx) => {
      for (const binding of await tx.table(roleBindingKind).findByIdentity(uid))
        await tx.table(roleBindingKind).delete(binding.uid);
      await tx.table(groupKind).update(world.root, { name: "mapping.example", verified: true }, Date.now());
      await tx.table(groupKind).update(group, { verified: true }, Date.now());
    });
    const mapping = await provider.map("eng", await newRole());
    const limitOf = async (scope: string, groups: readonly string[]) => {
      const parameters = { identity_provider: provider.uid, scopes: scope };
      const { outcome, json } = await world.exchange(parameters, provider.token({ sub: "hana", groups }));
      return json.token === undefined ? outcome : claimsOf(String(json.token)).lim;
    };
    const rejected = await limitOf("unknown.example", ["eng"]);
    assert.deepEqual(await limitOf("mapping.example", ["eng"]), { scope: [world.root] });
    assert.deepEqual(await limitOf("mapping.example", []), rejected);
    assert.deepEqual(await limitOf("mapped.example", ["eng"]), rejected);
    await call(`/externalGroupRoleMappings/${mapping}`, world.owner.token, "DELETE");
  });

  it("count until the mapping is deleted", async () => {
    const mapping = await provider.map("eng", await newRole());
    const token = await tokenFor({ groups: ["eng"] });
    assert.equal(await mayCreate(token), true);
    const path = `/externalGroupRoleMappings/${mapping}`;
    assert.equal((await call(path, world.owner.token, "DELETE")).status, 200);
    assert.equal(await mayCreate(token), false);
  });

  it("count as far as the role does, which cannot go before they do", async () => {
    const role = await newRole();
    const mapping = await provider.map("eng", role);
    const token = await tokenFor({ groups: ["eng"] });
    const { uid: invited } = await invite(world);
    const maySee = async () => (await call(`/groupInvites/${invited}`, token)).status === 200;
    assert.deepEqual([await mayCreate(token), await maySee()], [true, false]);
    const capabilities = ["CAP_IAM_GROUP_INVITES_LIST"];
    assert.equal((await call(`/roles/${role}`, world.owner.token, "PATCH", { capabilities })).status, 200);
    assert.deepEqual([await mayCreate(token), await maySee()], [false, true]);
    const inUse = precondition("RESOURCE_IN_USE", "cannot delete role that is in use");
    assert.deepEqual((await call(`/roles/${role}`, world.owner.token, "DELETE")).outcome, inUse);
    assert.equal((await call(`/externalGroupRoleMappings/${mapping}`, world.owner.token, "DELETE")).status, 200);
    assert.equal((await call(`/roles/${role}`, world.owner.token, "DELETE")).status, 200);
    assert.equal(await maySee(), false);
  });

  it("count until the provider is deleted", async () => {
    const own = await makeProvider(world);
    await own.signIn("gina");
    await own.map("eng", await newRole());
    const token = await tokenFor({ groups: ["eng"] }, own);
    assert.equal(await mayCreate(token), true);
    assert.equal((await call(`/identityProviders/${own.uid}`, world.owner.token, "DELETE")).status, 200);
    assert.deepEqual((await call(`/groups/${child}`, token)).outcome, unauthenticated());
  });

  it("of one provider do not count for the people of another, nor without one", async () => {
    const other = await makeProvider(world, { defaultRole: "registry.pull" });
    await other.signIn("gina");
    const mapping = await provider.map("eng", await newRole());
    const token = await tokenFor({ groups: ["eng"] }, other);
    assert.equal(await mayCreate(token), false);
    // Should such a token ever come to be, the store still asks whose mapping it is.
    const { installation } = world.harness.app;
    const { rows, global } = await installation.store.read(async (tx) => ({
      rows: await tx.access.findMappedGrants(other.uid, [mapping]),
      global: await tx.access.findMappedGrants(provider.uid, [mapping]),
    }));
    assert.deepEqual([rows.length, global.length], [0, 1]);
    await world.person("hal");
    const person = await world.exchangeToken({}, world.idToken({ sub: "hal", groups: ["eng"] }));
    assert.equal(claimsOf(person).map, undefined);
    assert.equal(await mayCreate(person), false);
    await world.write((tx) => tx.table(groupMappingKind).delete(mapping));
  });

  it("are too many above 32", async () => {
    const groups = Array.from({ length: 33 }, (_, i) => `team ${i}`);
    const viewer = builtinRoleUid("viewer");
    for (const group of groups) await provider.map(group, viewer);
    assert.equal((claimsOf(await tokenFor({ groups: groups.slice(1) })).map as string[]).length, 32);
    const { outcome } = await world.exchange(
      { identity_provider: provider.uid },
      provider.token({ sub: "gina", groups }),
    );
    assert.deepEqual(outcome, precondition("TOO_MANY_MAPPINGS", "more than 32 mappings apply to one person"));
  });
});
