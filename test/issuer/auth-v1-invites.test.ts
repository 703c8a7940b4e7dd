// Invites over REST: who may register with a code, with which role, and how often.
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { revokeTokens } from "../../src/iam/operator/operate.js";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { notAssumable, notPermitted, permissionDenied, resourceExhausted } from "../contract/expectations.js";
import { rawClients, requestOf } from "../contract/iam-clients.js";
import { bindingRow, groupRow, roleRow } from "../support/rows.js";
import { changeInvite, type Invite, invite, register } from "./auth-world.js";
import { ask } from "./sts/ask.js";
import { dumpOf, type ExchangeWorld, startExchangeWorld } from "./sts/exchange-world.js";

const REJECTED = permissionDenied("accepting this invite");
const EXPIRED = notPermitted("this invite has expired; ask for another one");
const USED = notPermitted("this invite was used already, and is valid once; ask for another one");
const OTHER_ADDRESS = notPermitted(
  "this invite is for an e-mail address that your login provider has not confirmed to be yours",
);
const HOUR_MS = 3_600_000;

let world: ExchangeWorld;
let child: string;
let count = 0;
before(async () => {
  world = await startExchangeWorld();
  child = randomIds.newUid(world.root);
  await world.write((tx) => tx.table(groupKind).insert(groupRow(child)));
});
after(() => world.stop());

/** A person without an account. */
const newcomer = (where = world, claims: object = {}) => {
  const sub = `newcomer ${++count}`;
  return { uid: personUid(where.people.issuer, sub), bearer: where.idToken({ sub, ...claims }) };
};
const bindingsOf = (uid: string) =>
  world.harness.app.installation.store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid));
const exists = async (uid: string, where = world) =>
  (await where.harness.app.installation.store.read((tx) => tx.table(identityKind).find(uid))) !== undefined;
/** Wrong codes count against the address; each test that gives some gets a service whose count is new. */
async function inOwnWorld(work: (own: ExchangeWorld) => Promise<void>): Promise<void> {
  const before = world;
  world = await startExchangeWorld();
  try {
    await work(world);
  } finally {
    await world.stop();
    world = before;
  }
}

describe("an invite", () => {
  it("registers the bearer of its code with its role", async () => {
    const { code } = await invite(world, { group: child, role: "editor" });
    const { uid, bearer } = newcomer(world, { name: "New", email: "new@example.org", email_verified: true });
    assert.deepEqual((await register(world, bearer, { code })).json, { identity: uid, group: child });
    const [binding, ...more] = await bindingsOf(uid);
    assert.deepEqual([binding?.groupUid, binding?.roleUid, more], [child, builtinRoleUid("editor"), []]);
    const token = await world.exchangeToken({}, bearer);
    assert.equal((await ask(world.url, `/iam/v2beta1/groups/${child}`, { bearer: token })).status, 200);
    assert.equal((await ask(world.url, `/iam/v2beta1/groups/${world.root}`, { bearer: token })).status, 403);
    const [row] = await world.harness.app.installation.store.read((tx) => tx.audit.listNewest(1, world.root));
    const { type, actorUid, subjectUid, remoteAddress } = row ?? {};
    assert.deepEqual([type, actorUid, subjectUid], ["dev.chainguard.api.auth.registered.v1", uid, child]);
    assert.equal(remoteAddress, "127.0.0.1");
    const bodies = await world.harness.app.installation.store.read((tx) => tx.audit.readBodies(row ? [row] : []));
    const body = JSON.parse(bodies.get(row?.id ?? 0) ?? "{}");
    assert.deepEqual([body.type, body.after], ["chainguard.platform.auth.Session", { group: child, identity: uid }]);
    assert.ok(!bodies.get(row?.id ?? 0)?.includes(code));
  });

  it("is valid for many people, once for each", async () => {
    const { code } = await invite(world);
    for (const { uid, bearer } of [newcomer(), newcomer()]) {
      for (let time = 0; time < 2; time++) assert.equal((await register(world, bearer, { code })).status, 200);
      assert.equal((await bindingsOf(uid)).length, 1);
    }
  });

  it("over every protocol", async () => {
    const { register: method } = Auth.method;
    for (const client of rawClients(world.url)) {
      const { code } = await invite(world);
      const { uid, bearer } = newcomer();
      const response = await client.call(method, requestOf(method, { code }), bearer);
      assert.equal(response.code, "OK", response.bytes);
      assert.equal((await bindingsOf(uid)).length, 1, client.name);
      client.close();
    }
  });

  it("for a single use registers one person", async () => {
    const { code, uid } = await invite(world, { singleUse: true });
    assert.equal((await register(world, newcomer().bearer, { code })).status, 200);
    const late = newcomer();
    assert.deepEqual((await register(world, late.bearer, { code })).outcome, USED);
    assert.equal(await exists(late.uid), false);
    const read = await ask(world.url, `/iam/v2beta1/groupInvites/${uid}`, { bearer: world.owner.token });
    assert.equal(read.status, 404);
  });

  it("for a single use registers one of many at the same time", () =>
    inOwnWorld(async (own) => {
      const { code } = await invite(own, { singleUse: true });
      const people = Array.from({ length: 8 }, () => newcomer());
      const responses = await Promise.all(people.map(({ bearer }) => register(own, bearer, { code })));
      assert.deepEqual(responses.map(({ status }) => status).sort(), [200, ...Array.from({ length: 7 }, () => 403)]);
      const known = await Promise.all(people.map(({ uid }) => exists(uid)));
      assert.equal(known.filter(Boolean).length, 1);
    }));

  it("ends", async () => {
    const { code } = await invite(world, { ttl: "3600s" });
    world.harness.skewMs = HOUR_MS - 5_000;
    try {
      assert.equal((await register(world, newcomer().bearer, { code })).status, 200);
      world.harness.skewMs = HOUR_MS + 1_000;
      assert.deepEqual((await register(world, newcomer().bearer, { code })).outcome, EXPIRED);
    } finally {
      world.harness.skewMs = 0;
    }
  });

  it("ends with its deletion", async () => {
    const { code, uid } = await invite(world);
    await ask(world.url, `/iam/v2beta1/groupInvites/${uid}`, { method: "DELETE", bearer: world.owner.token });
    assert.deepEqual((await register(world, newcomer().bearer, { code })).outcome, REJECTED);
  });

  const addresses: readonly [name: string, claims: object, isLetIn: boolean][] = [
    ["that address", { email: "guest@example.org", email_verified: true }, true],
    ["that address in another case", { email: "Guest@Example.ORG", email_verified: true }, true],
    ["another address", { email: "mallory@example.org", email_verified: true }, false],
    ["a longer address", { email: "guest@example.org.evil.example", email_verified: true }, false],
    ["that address, not confirmed", { email: "guest@example.org", email_verified: false }, false],
    ["that address, confirmed in words", { email: "guest@example.org", email_verified: "true" }, false],
    ["that address, nothing said of it", { email: "guest@example.org" }, false],
    ["no address", {}, false],
    ["a list of addresses", { email: ["guest@example.org"], email_verified: true }, false],
  ];
  it("for an email address registers the person who has it", () =>
    inOwnWorld(async (own) => {
      const { code } = await invite(own, { email: "guest@example.org" });
      for (const [name, claims, isLetIn] of addresses) {
        const { uid, bearer } = newcomer(world, claims);
        assert.deepEqual((await register(own, bearer, { code })).status, isLetIn ? 200 : 403, name);
        assert.equal(await exists(uid), isLetIn, name);
      }
    }));

  it("for an address rejects another address that lower case turns into it", () =>
    inOwnWorld(async (own) => {
      // The sign for kelvin: its lower case is the letter k.
      const { code } = await invite(own, { email: "kate@example.org" });
      const { bearer } = newcomer(world, { email: "\u212aate@example.org", email_verified: true });
      assert.deepEqual((await register(own, bearer, { code })).outcome, OTHER_ADDRESS);
    }));

  it("tells nobody without its whole code that it has expired or was used", () =>
    inOwnWorld(async (own) => {
      const [used, expired] = [await invite(own, { singleUse: true }), await invite(own, { ttl: "1s" })];
      assert.equal((await register(own, newcomer(own).bearer, { code: used.code })).status, 200);
      own.harness.skewMs = 2_000;
      const { bearer } = newcomer(own);
      for (const made of [used, expired]) {
        const secret = String(JSON.parse(Buffer.from(made.code, "base64url").toString()).sec);
        const guesses = [{ sec: "0".repeat(32) }, { sec: secret.slice(0, -1) }, { grp: own.foreign }];
        for (const guess of guesses) {
          assert.deepEqual((await register(own, bearer, { code: changeInvite(made, guess) })).outcome, REJECTED);
        }
      }
      assert.deepEqual((await register(own, bearer, { code: used.code })).outcome, USED);
      assert.deepEqual((await register(own, bearer, { code: expired.code })).outcome, EXPIRED);
      own.harness.skewMs = 31 * 24 * HOUR_MS;
      const later = own.idToken({ sub: "later" });
      assert.deepEqual((await register(own, later, { code: used.code })).outcome, REJECTED, "it is forgotten");
    }));

  it("for an email address is invalid for workloads, which have none", async () => {
    const identityId = await world.workload("for an address");
    const { code } = await invite(world, { email: "guest@example.org" });
    assert.deepEqual(
      (await register(world, world.token({ sub: "for an address" }), { code, identityId })).outcome,
      OTHER_ADDRESS,
    );
  });
});

describe("invalid codes", () => {
  // Fewer of these codes belong to no invite than an address may give.
  let own: ExchangeWorld;
  before(async () => {
    own = await startExchangeWorld();
  });
  after(() => own.stop());

  const wrong: readonly [name: string, code: (good: Invite, other: Invite) => string][] = [
    ["with another secret", (good) => changeInvite(good, { sec: "0".repeat(32) })],
    ["with a secret one letter short", (good) => changeInvite(good, { sec: secretOf(good).slice(0, -1) })],
    ["with no secret", (good) => changeInvite(good, { sec: "" })],
    ["with the secret of another", (good, other) => changeInvite(good, { sec: secretOf(other) })],
    ["for another group", (good) => changeInvite(good, { grp: world.root })],
    ["for a group of another organisation", (good) => changeInvite(good, { grp: world.foreign })],
    ["with an unknown key", (good) => changeInvite(good, { kid: "0".repeat(16) })],
    ["with a key that is none", (good) => changeInvite(good, { kid: ["x"] })],
    ["of nothing", () => ""],
    ["of nonsense", () => "nonsense"],
    ["of null", () => Buffer.from("null").toString("base64url")],
    ["in another alphabet", ({ code }) => `${code}=`],
    ["of 2,000 characters", () => "a".repeat(2_000)],
  ];
  for (const [name, of] of wrong) {
    it(`${name} register nobody and change nothing`, async () => {
      const group = randomIds.newUid(own.root);
      await own.write((tx) => tx.table(groupKind).insert(groupRow(group)));
      const [good, other] = [await invite(own, { group }), await invite(own, { group })];
      const stored = dumpOf(own.data);
      const { uid, bearer } = newcomer(own);
      const { outcome, json } = await register(own, bearer, { code: of(good, other) });
      // Without a code the person is not registered.
      if (name === "of nothing") assert.equal(json.code, 5);
      else assert.deepEqual(outcome, REJECTED);
      assert.deepEqual(dumpOf(own.data), stored);
      assert.equal(await exists(uid, own), false);
      assert.equal((await register(own, bearer, { code: good.code })).status, 200, "the good one is still good");
    });
  }

  const secretOf = ({ code }: Invite) => String(JSON.parse(Buffer.from(code, "base64url").toString()).sec);

  it("are limited by invite and address, and right ones pass", () =>
    inOwnWorld(async (own) => {
      const [one, two] = [await invite(own), await invite(own)];
      const bearer = newcomer().bearer;
      const from = (localAddress: string, code: string) => registerFrom(own.url, localAddress, bearer, code);
      const guess = (of: Invite, i: number) => changeInvite(of, { sec: i.toString(16).padStart(32, "0") });
      for (let i = 0; i < 10; i++) assert.equal(await from("127.0.1.1", guess(one, i)), 403);
      assert.equal(await from("127.0.1.1", guess(one, 10)), 429, "ten guesses at one from one address");
      assert.equal(await from("127.0.1.1", guess(two, 0)), 403, "guesses at others are not counted with them");
      assert.equal(await from("127.0.1.2", guess(one, 11)), 403, "nor are those from elsewhere");
      assert.equal(await from("127.0.1.1", two.code), 200, "others of the address are as good as before");
      assert.equal(await from("127.0.1.1", one.code), 200, "and so is the one that was guessed at");
      assert.equal(await from("127.0.1.1", guess(one, 12)), 429, "whose count goes on");
      const { outcome } = await register(own, bearer, { code: guess(one, 13) });
      assert.deepEqual(outcome, REJECTED);
    }));

  it("that belong to no invite leave invites alone", () =>
    inOwnWorld(async (own) => {
      const { code } = await invite(own);
      const bearer = newcomer().bearer;
      for (let i = 0; i < 12; i++) {
        const { outcome } = await register(own, bearer, { code: "nonsense" });
        assert.deepEqual(outcome, i < 10 ? REJECTED : resourceExhausted("too many refused requests"));
      }
      assert.equal((await register(own, bearer, { code })).status, 200);
    }));
});

describe("the creator of an invite", () => {
  const maker = async () => {
    const person = await world.harness.identity();
    const role = randomIds.newUid(world.root);
    const uid = randomIds.newUid(world.root);
    const viewer = await world.harness.app.installation.store.read((tx) =>
      tx.table(roleKind).find(builtinRoleUid("viewer")),
    );
    const rights = buildCapabilitySet(["group_invites.create", "role_bindings.create"]);
    await world.write(async (tx) => {
      await tx.table(roleKind).insert(roleRow(role, { groupUid: world.root, capabilities: rights }));
      await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(world.root), person.uid, role));
      await tx.table(roleBindingKind).insert(bindingRow(uid, person.uid, viewer?.uid ?? ""));
    });
    return { person, binding: uid, made: await invite(world, { by: person, group: child }) };
  };

  it("must still hold the rights that the invite grants", async () => {
    const { person, binding, made } = await maker();
    const row = await world.harness.app.installation.store.read((tx) => tx.table(roleBindingKind).find(binding));
    assert.ok(row, "the binding is there");
    await world.write((tx) => tx.table(roleBindingKind).delete(binding));
    const late = newcomer();
    const { status, json } = await register(world, late.bearer, { code: made.code });
    assert.deepEqual([status, json.code], [403, 7]);
    assert.equal(await exists(late.uid), false);
    await world.write((tx) => tx.table(roleBindingKind).insert(row));
    assert.equal((await register(world, late.bearer, { code: made.code })).status, 200);
    await world.write(async (tx) => {
      for (const { uid } of await tx.table(roleBindingKind).findByIdentity(person.uid))
        await tx.table(roleBindingKind).delete(uid);
      await tx.table(identityKind).delete(person.uid);
    });
    assert.equal((await register(world, newcomer().bearer, { code: made.code })).status, 403, "a maker who is gone");
  });
});

describe("an invite whose maker was revoked", () => {
  it("is rejected if it was created before, for every bearer, and valid if it was created after", () =>
    inOwnWorld(async (own) => {
      const maker = await own.person("maker");
      const owners = { groupUid: own.root, roleUid: builtinRoleUid("owner") };
      const uid = randomIds.newUid(own.root);
      await own.write((tx) => tx.table(roleBindingKind).insert({ ...bindingRow(uid, maker.uid, owners.roleUid) }));
      const before = await invite(own, { by: maker });
      const { code: used } = await invite(own, { by: maker });
      assert.equal((await register(own, newcomer().bearer, { code: used })).status, 200, "the control");
      const { harness } = own;
      await own.write((tx) => revokeTokens(tx, maker.uid, { ids: randomIds, nowMs: Date.now() + harness.skewMs }));
      const { uid: late, bearer } = newcomer();
      assert.deepEqual((await register(own, bearer, { code: before.code })).outcome, REJECTED);
      assert.deepEqual((await register(own, bearer, { code: used })).outcome, REJECTED);
      assert.equal(await exists(late), false);
      const identityId = await own.workload("late");
      const registered = await register(own, own.token({ sub: "late" }), { code: before.code, identityId });
      assert.deepEqual(registered.outcome, REJECTED);

      harness.skewMs += 2_000;
      const token = await own.exchangeToken({}, own.idToken({ sub: "maker" }));
      const after = await invite(own, { by: { token } });
      assert.equal((await register(own, bearer, { code: after.code })).status, 200, "one that was made after");
      harness.skewMs -= 2_000;
    }));
});

describe("identities that workloads assume", () => {
  it("are registered by uid, within their organisation", async () => {
    const identityId = await world.workload("invited");
    const { code } = await invite(world, { group: child });
    const bearer = world.token({ sub: "invited" });
    assert.deepEqual((await register(world, bearer, { code, identity_id: identityId })).json, {
      identity: identityId,
      group: child,
    });
    const [binding] = await bindingsOf(identityId);
    assert.equal(binding?.groupUid, child);
  });

  it("not into another group, and not by callers that may not assume them", () =>
    inOwnWorld(async (own) => {
      const [ours, theirs] = [await own.workload("a"), await own.workload("a", { group: own.foreign })];
      const { code } = await invite(own, { singleUse: true });
      const bearer = own.token({ sub: "a" });
      assert.deepEqual((await register(own, bearer, { code, identityId: theirs })).outcome, REJECTED);
      const mallory = own.token({ sub: "mallory" });
      const unknown = randomIds.newUid(own.root);
      for (const identityId of [ours, theirs, unknown]) {
        assert.deepEqual(
          (await register(own, mallory, { code, identityId })).outcome,
          permissionDenied(`assuming ${identityId}`),
        );
      }
      const person = own.idToken({ sub: "person" });
      assert.deepEqual((await register(own, person, { code, identityId: ours })).outcome, notAssumable(ours, true));
      const { group: foreign, token } = await own.harness.organisation("third");
      const { code: abroad } = await invite(own, { group: foreign, by: { token } });
      assert.deepEqual((await register(own, bearer, { code: abroad, identityId: ours })).outcome, REJECTED);
      assert.deepEqual([(await bindingsOf(theirs)).length, (await bindingsOf(ours)).length], [0, 0]);
      assert.equal((await register(own, bearer, { code, identityId: ours })).status, 200, "the invite is still there");
    }));
});

describe("bindings as others see them", () => {
  it("show people who accepted, and only the uid of others", async () => {
    const { code } = await invite(world, { group: child });
    const accepted = newcomer(world, { name: "Accepted", email: "accepted@example.org", email_verified: true });
    await register(world, accepted.bearer, { code });
    const bound = await world.person("bound", { name: "Bound", email: "bound@example.org" });
    const path = `/iam/v2beta1/roleBindings/${child}`;
    const roleUid = builtinRoleUid("viewer");
    const json = { identityUid: bound.uid, roleUid };
    assert.equal((await ask(world.url, path, { method: "POST", json, bearer: world.owner.token })).status, 200);
    const list = await ask(world.url, `/iam/v2beta1/roleBindings?group=${child}&page_size=200`, {
      bearer: world.owner.token,
    });
    const responses = new Map(
      (list.json.roleBindings as { identity: { uid: string } }[]).map((one) => [one.identity.uid, one.identity]),
    );
    const { issuer } = world.people;
    const subject = "newcomer ".concat(String(count));
    assert.deepEqual(responses.get(accepted.uid), {
      uid: accepted.uid,
      name: "Accepted",
      issuer,
      subject,
      email: "accepted@example.org",
      description: "",
    });
    const { uid, ...rest } = (responses.get(bound.uid) ?? {}) as { uid?: string };
    assert.equal(uid, bound.uid);
    assert.ok(
      Object.values(rest).every((value) => value === ""),
      JSON.stringify(rest),
    );
    assert.ok(!list.text.includes("bound@example.org"), list.text);
  });
});

function registerFrom(url: string, localAddress: string, bearer: string, code: string): Promise<number> {
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const req = request(`${url}/auth/v1/register`, { method: "POST", localAddress, headers, agent: false }, (res) => {
      res.resume().on("end", () => resolve(res.statusCode ?? 0));
    });
    req.on("error", reject).end(JSON.stringify({ code }));
  });
}
