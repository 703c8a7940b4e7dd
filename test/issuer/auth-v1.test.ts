// Auth: what callers learn about their own token, registration without an invite, and the deletion of one's own
// identity.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { bootstrap } from "../../src/iam/operator/bootstrap.js";
import { listCapabilityNames } from "../../src/iam/roles/capability-names.js";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { invalid, notPermitted, permissionDenied, precondition, unauthenticated } from "../contract/expectations.js";
import { rawClients, requestOf } from "../contract/iam-clients.js";
import { groupRow } from "../support/rows.js";
import { invite, register } from "./auth-world.js";
import { ask } from "./sts/ask.js";
import { claimsOf, dumpOf, type ExchangeWorld, type Somebody, startExchangeWorld } from "./sts/exchange-world.js";

let world: ExchangeWorld;
let child: string;
before(async () => {
  world = await startExchangeWorld();
  child = randomIds.newUid(world.root);
  await world.write((tx) => tx.table(groupKind).insert(groupRow(child, { name: "child" })));
});
after(() => world.stop());

async function namesOf(role: string): Promise<string[]> {
  const { store } = world.harness.app.installation;
  const row = await store.read((tx) => tx.table(roleKind).find(builtinRoleUid(role)));
  return listCapabilityNames(row?.capabilities ?? "");
}

interface WhoAmI {
  readonly issuer: string;
  readonly subject: string;
  readonly audience: readonly string[];
  readonly expiry: string;
  readonly issuedAt: string;
  readonly email: string;
  readonly profile?: object;
  readonly capabilities: readonly {
    readonly group: { readonly id: string; readonly name: string };
    readonly role: { readonly id: string; readonly name: string; readonly capabilities: readonly string[] };
    readonly capabilities: readonly string[];
  }[];
}

const whoAmI = async (bearer: string): Promise<WhoAmI> => {
  const { status, json, text } = await ask(world.url, "/auth/v1/ok", { bearer });
  assert.equal(status, 200, text);
  return json as unknown as WhoAmI;
};

describe("validate", () => {
  it("answers with the identity and the expiry", async () => {
    const identity = await world.workload("who");
    const token = await world.exchangeToken({ identity }, world.token({ sub: "who" }));
    const { issuer, subject, audience, expiry, issuedAt, email, profile, capabilities } = await whoAmI(token);
    const { iat, exp } = claimsOf(token) as { iat: number; exp: number };
    assert.deepEqual([issuer, subject, audience, email, profile], [world.url, identity, [world.url], "", undefined]);
    assert.deepEqual([Date.parse(issuedAt), Date.parse(expiry)], [iat * 1000, exp * 1000]);
    assert.deepEqual(capabilities, []);
  });

  it("answers with the profile of the provider", async () => {
    await world.person("ann", { email: "ann@example.org" });
    const profile = { name: "Ann", given_name: "A", family_name: "N", picture: "https://p.example/a" };
    const response = await whoAmI(
      await world.exchangeToken({}, world.idToken({ sub: "ann", ...profile, email: "x@y.example" })),
    );
    assert.equal(response.email, "ann@example.org");
    assert.deepEqual(response.profile, {
      name: "Ann",
      givenName: "A",
      familyName: "N",
      picture: "https://p.example/a",
    });
  });

  it("answers with the current capabilities by group", async () => {
    const identity = await world.workload("what", { role: "viewer" });
    const token = await world.exchangeToken({ identity }, world.token({ sub: "what" }));
    const bound = await world.harness.bind(identity, "editor", child);
    const { capabilities } = await whoAmI(token);
    assert.deepEqual(
      capabilities.map(({ group, role }) => [group.id, role.id, role.name]).sort(),
      [
        [world.root, builtinRoleUid("viewer"), "viewer"],
        [child, builtinRoleUid("editor"), "editor"],
      ].sort(),
    );
    for (const one of capabilities) {
      assert.deepEqual(one.capabilities, one.role.capabilities);
      assert.equal(one.capabilities.includes("groups.list"), true);
    }
    await world.write((tx) => tx.table(roleBindingKind).delete(bound));
    assert.deepEqual(
      (await whoAmI(token)).capabilities.map(({ group }) => group.id),
      [world.root],
    );
  });

  it("answers with no more than the token may be used for", async () => {
    const identity = await world.workload("less", { role: "viewer" });
    await world.harness.bind(identity, "editor", child);
    const response = async (parameters: Readonly<Record<string, string>>) => {
      const { capabilities } = await whoAmI(
        await world.exchangeToken({ identity, ...parameters }, world.token({ sub: "less" })),
      );
      return capabilities
        .map(({ group, capabilities: names }) => [group.id, names.length > 1 ? "many" : names[0]])
        .sort();
    };
    assert.deepEqual(
      await response({ cap: "groups.list" }),
      [
        [world.root, "groups.list"],
        [child, "groups.list"],
      ].sort(),
    );
    const [viewers, editors] = [await namesOf("viewer"), await namesOf("editor")];
    const [editorsOnly = ""] = editors.filter((name) => !viewers.includes(name));
    assert.deepEqual(await response({ cap: editorsOnly }), [[child, editorsOnly]]);
    // What is granted below the group that limits a token does not count: of the role there, a part is left.
    const { capabilities } = await whoAmI(
      await world.exchangeToken({ identity, scope: world.root }, world.token({ sub: "less" })),
    );
    const below = capabilities.find(({ group }) => group.id === child);
    const has = [below?.role.capabilities.includes(editorsOnly), below?.capabilities.includes(editorsOnly)];
    assert.deepEqual(has, [true, false]);
    assert.deepEqual(await response({ scope: world.foreign }), []);
  });

  it("answers the same over every protocol, and UNAUTHENTICATED without a token", async () => {
    const { validate } = Auth.method;
    for (const client of rawClients(world.url)) {
      const { code, bytes } = await client.call(validate, requestOf(validate, {}), world.owner.token);
      assert.equal(code, "OK", client.name);
      assert.ok(bytes.includes(world.owner.uid), bytes);
      assert.equal((await client.call(validate, requestOf(validate, {}))).code, "UNAUTHENTICATED", client.name);
      assert.equal(
        (await client.call(validate, requestOf(validate, {}), world.token({ sub: "who" }))).code,
        "UNAUTHENTICATED",
      );
      client.close();
    }
  });
});

describe("registering without an invite", () => {
  it("finds registered people, and updates their email address", async () => {
    const { uid } = await world.person("known", { email: "old@example.org" });
    const claims = { sub: "known", email: "new@example.org", email_verified: true };
    const response = await register(world, world.idToken(claims), {});
    assert.deepEqual(response.outcome, { code: "OK", result: { identity: uid, group: "" } });
    const read = () => world.harness.app.installation.store.read((tx) => tx.table(identityKind).find(uid));
    assert.deepEqual([(await read())?.email, (await read())?.emailUnverified], ["new@example.org", ""]);
    await register(world, world.idToken({ ...claims, email_verified: "true" }), {});
    assert.deepEqual(
      [(await read())?.email, (await read())?.emailUnverified],
      ["", "new@example.org"],
      "only true is true",
    );
    // An ID token that says nothing of an address takes none away: UserInfo may have it.
    await register(world, world.idToken(claims), {});
    for (const partial of [{ sub: "known" }, { sub: "known", email: "new@example.org" }])
      assert.equal((await register(world, world.idToken(partial), {})).status, 200);
    assert.deepEqual([(await read())?.email, (await read())?.emailUnverified], ["new@example.org", ""]);
  });

  it("is rejected for others, who are not registered", async () => {
    const stored = dumpOf(world.data);
    const { status, json } = await register(world, world.idToken({ sub: "stranger" }), {});
    assert.deepEqual(
      [status, json.message],
      [
        404,
        "Not found: identity: account not found: you need an invite; ask an owner of your organisation for one. " +
          "Nobody can expect you by your e-mail address: your login provider states none (claim email)",
      ],
    );
    assert.deepEqual(dumpOf(world.data), stored);
  });

  it("is open to them where the operator configures it", async () => {
    const open = await startExchangeWorld({ registration: "open" });
    const bearer = open.idToken({ sub: "stranger", name: "Stranger", email: "s@example.org", email_verified: true });
    const response = await register(open, bearer, {});
    const uid = personUid(open.people.issuer, "stranger");
    assert.deepEqual(response.json, { identity: uid, group: "" });
    const [row] = await open.harness.app.installation.store.read((tx) => tx.audit.listNewest(1));
    const { type, actorUid, subjectUid } = row ?? {};
    assert.deepEqual([type, actorUid, subjectUid], ["dev.chainguard.api.auth.registered.v1", uid, uid]);
    const { json } = await open.exchange({}, bearer);
    const who = await ask(open.url, "/auth/v1/ok", { bearer: String(json.token) });
    assert.deepEqual([who.json.subject, who.json.email, who.json.capabilities], [uid, "s@example.org", []]);
    assert.deepEqual((await register(open, bearer, {})).json, { identity: uid, group: "" }, "twice is once");
    assert.equal((await register(open, open.idToken({ sub: "x", aud: "y" }), {})).status, 401);
    await open.stop();
  });

  it("is not for workloads, whose identities are created explicitly", async () => {
    const identityId = await world.workload("ci");
    const { outcome } = await register(world, world.token({ sub: "ci" }), { identityId });
    assert.deepEqual(outcome, permissionDenied("accepting this invite"));
    const noUid = await register(world, world.token({ sub: "ci" }), { identityId: "ci" });
    assert.deepEqual(noUid.outcome, invalid(["identityId", "identityId must be a uid"]));
    for (const bearer of [undefined, "x.y.z", world.owner.token]) {
      assert.deepEqual((await register(world, bearer, {})).outcome, unauthenticated());
    }
    const unnamed = await register(world, world.token({ sub: "ci" }), {});
    assert.deepEqual(unnamed.outcome, invalid(["identityId", "name the identity to assume"]));
  });
});

describe("deleting one's own identity", () => {
  const forget = (bearer: string, id: string) => ask(world.url, `/auth/v1/delete/${id}`, { method: "DELETE", bearer });
  const newcomer = async (name: string, role?: string): Promise<Somebody> => {
    const person = await world.person(name);
    if (role !== undefined) await world.harness.bind(person.uid, role, world.root);
    return person;
  };

  let former = "";

  it("deletes the person and all that is bound to it", async () => {
    const { uid, token } = await newcomer("leaver", "editor");
    const response = await forget(token, uid);
    assert.deepEqual([response.status, response.text], [200, ""]);
    const { store } = world.harness.app.installation;
    assert.deepEqual(await store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid)), []);
    assert.equal(await store.read((tx) => tx.table(identityKind).find(uid)), undefined);
    const [row] = await store.read((tx) => tx.audit.listNewest(1));
    assert.deepEqual(
      [row?.method, row?.subjectUid, row?.actorUid],
      ["/chainguard.platform.auth.Auth/Delete", uid, uid],
    );
    assert.deepEqual((await ask(world.url, "/auth/v1/ok", { bearer: token })).outcome, unauthenticated());
  });

  it("leaves nothing for a person who signs in again", async () => {
    const { uid, token } = await newcomer("returner", "owner");
    await forget(token, uid);
    world.harness.skewMs = 2_000;
    try {
      const { code } = await invite(world, { group: child });
      const bearer = world.idToken({ sub: "returner" });
      assert.deepEqual((await register(world, bearer, { code })).json, { identity: uid, group: child });
      const { capabilities } = await whoAmI(await world.exchangeToken({}, bearer));
      assert.deepEqual(
        capabilities.map(({ group }) => group.id),
        [child],
      );
      assert.deepEqual((await ask(world.url, "/auth/v1/ok", { bearer: token })).outcome, unauthenticated());
    } finally {
      world.harness.skewMs = 0;
    }
  });

  it("leaves no token valid, however soon the person registers again", async () => {
    for (let round = 0; round < 5; round++) {
      const { code } = await invite(world, { group: child });
      const bearer = world.idToken({ sub: "hasty" });
      // At the begin of a second, so that everything happens within it.
      await new Promise((resolve) => setTimeout(resolve, 1_010 - (Date.now() % 1_000)));
      let registered = await register(world, bearer, { code });
      while (registered.status === 503) {
        assert.match(registered.text, /deleted a moment ago.*RetryInfo/);
        await new Promise((resolve) => setTimeout(resolve, 50));
        registered = await register(world, bearer, { code });
      }
      assert.equal(registered.status, 200, registered.text);
      const { identity: uid } = registered.json as { identity: string };
      const token = await world.exchangeToken({}, bearer);
      assert.equal(
        (await ask(world.url, "/auth/v1/ok", { bearer: token })).status,
        200,
        "the new one is valid at once",
      );
      if (round > 0) {
        assert.deepEqual((await ask(world.url, "/auth/v1/ok", { bearer: former })).outcome, unauthenticated());
      }
      former = token;
      assert.equal((await forget(token, uid)).status, 200);
      const again = await register(world, bearer, { code: (await invite(world, { group: child })).code });
      if (again.status === 200) {
        assert.deepEqual((await ask(world.url, "/auth/v1/ok", { bearer: token })).outcome, unauthenticated());
        await forget(await world.exchangeToken({}, bearer), uid);
      }
    }
  });

  it("leaves nothing for a person who is then made the owner of an organisation on the host", async () => {
    const { uid, token } = await newcomer("founder");
    await forget(token, uid);
    world.harness.skewMs = 2_000;
    try {
      const owner = { issuer: world.people.issuer, subject: "founder" };
      const made = await world.write((tx) => bootstrap(tx, { org: "founded", owner }, randomIds, Date.now() + 2_000));
      assert.equal(made.identity, uid);
      assert.deepEqual((await ask(world.url, "/auth/v1/ok", { bearer: token })).outcome, unauthenticated());
      assert.deepEqual((await whoAmI(await world.harness.token(uid))).subject, uid);
    } finally {
      world.harness.skewMs = 0;
    }
  });

  it("is for oneself alone, with a token that is not limited", async () => {
    const [one, other] = [await newcomer("one"), await newcomer("other")];
    const stored = dumpOf(world.data);
    for (const id of [other.uid, randomIds.newUid()]) {
      assert.deepEqual((await forget(one.token, id)).outcome, permissionDenied(`deleting ${id}`));
    }
    assert.deepEqual((await forget(world.owner.token, one.uid)).outcome, permissionDenied(`deleting ${one.uid}`));
    const limits: Readonly<Record<string, string>>[] = [{ scope: world.root }, { cap: "groups.list" }];
    for (const parameters of limits) {
      const token = await world.exchangeToken(parameters, world.idToken({ sub: "one" }));
      const rule = "deleting an identity needs a token that is not limited";
      assert.deepEqual((await forget(token, one.uid)).outcome, notPermitted(rule));
    }
    assert.deepEqual(
      (await ask(world.url, `/auth/v1/delete/${one.uid}`, { method: "DELETE" })).outcome,
      unauthenticated(),
    );
    assert.deepEqual(dumpOf(world.data), stored);
  });

  it("is for people", async () => {
    const identity = await world.workload("ci to delete");
    const token = await world.exchangeToken({ identity }, world.token({ sub: "ci to delete" }));
    const { outcome } = await forget(token, encodeURIComponent(identity));
    assert.deepEqual(outcome, invalid(["id", "id must be the caller's own identity as a person"]));
  });

  it("is rejected where an organisation would lose its last owner", async () => {
    const { identity, token } = await world.harness.organisation("lonely");
    const { outcome } = await forget(token, identity);
    assert.deepEqual(outcome, precondition("OWNER_REQUIRED", "a root group must keep an owner"));
    assert.equal((await ask(world.url, "/auth/v1/ok", { bearer: token })).status, 200);
  });
});
