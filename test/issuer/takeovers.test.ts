// Ways to take over an account that must not work (docs/security.md, "Who is
// who"), tried as an attacker would.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { signIn } from "../../src/iam/people/sign-in.js";
import { builtinRoleUid, providerPersonUid, randomIds } from "../../src/kernel/ids.js";
import { groupInviteKind } from "../../src/store/iam/group-invites.js";
import { identityProviderKind } from "../../src/store/iam/identity-providers.js";
import {
  FOR_OTHERS,
  invalid,
  notAssumable,
  notPermitted,
  permissionDenied,
  unauthenticated,
} from "../contract/expectations.js";
import { directoryContext } from "../support/directory-context.js";
import { signToken } from "../support/local-issuer.js";
import { invite, register } from "./auth-world.js";
import { type Answer, ask } from "./sts/ask.js";
import { CLIENT, claimsOf, type ExchangeWorld, type Somebody, startExchangeWorld } from "./sts/exchange-world.js";
import { makeProvider, type ProviderKit } from "./sts/provider-people.js";

let world: ExchangeWorld;
before(async () => {
  world = await startExchangeWorld();
});
after(() => world.stop());

const call = (bearer: string, path: string, method = "GET", json?: object): Promise<Answer> =>
  ask(world.url, `/iam/v2beta1${path}`, { method, bearer, ...(json && { json }) });
const tokenOf = ({ json }: Answer) => String(json.token);

describe("a tenant that names the issuer of the login provider as its own, with a client of its own", () => {
  let victim: Somebody;
  let evil: ProviderKit;
  before(async () => {
    victim = await world.person("victim", { email: "victim@example.org" });
    await world.harness.bind(victim.uid, "owner", world.root);
    evil = await makeProvider(world, { group: world.foreign, owner: world.foreignOwner, client: "evil" });
  });
  /** What the tenant gets when the victim signs in to its application. */
  const createStolenToken = (claims: object = {}) =>
    evil.token({ sub: "victim", email: "victim@example.org", email_verified: true, ...claims });

  it("does not become the person who signs in there", async () => {
    assert.deepEqual((await world.exchange({}, createStolenToken())).outcome, unauthenticated(FOR_OTHERS));
    assert.deepEqual(
      (await world.exchange({ identity: victim.uid }, createStolenToken())).outcome,
      notAssumable(victim.uid, true),
    );
    assert.deepEqual(
      (await world.exchange({ identity_provider: evil.uid }, createStolenToken())).outcome,
      notPermitted("Identity not found: sign in with a browser first"),
    );
    for (const claims of [
      { aud: ["evil", CLIENT] },
      { aud: ["evil", CLIENT], azp: "evil" },
      { aud: ["evil", world.url] },
    ]) {
      assert.deepEqual(
        (await world.exchange({}, createStolenToken(claims))).outcome,
        unauthenticated(),
        JSON.stringify(claims),
      );
    }
    assert.deepEqual((await register(world, createStolenToken(), {})).outcome, unauthenticated(FOR_OTHERS));
    assert.deepEqual(
      (await register(world, createStolenToken(), { identityId: victim.uid })).outcome,
      notAssumable(victim.uid, true),
    );
  });

  it("gets a person of its own, without access outside", async () => {
    const uid = await evil.signIn("victim", { email: "victim@example.org", email_verified: true });
    assert.notEqual(uid, victim.uid);
    assert.equal(uid, providerPersonUid(evil.uid, world.people.issuer, "victim"));
    const token = tokenOf(await world.exchange({ identity_provider: evil.uid }, createStolenToken()));
    assert.deepEqual([claimsOf(token).sub, claimsOf(token).email_verified], [uid, false]);
    assert.equal((await call(token, `/groups/${world.foreign}`)).status, 200);
    assert.equal((await call(token, `/groups/${world.root}`)).status, 403);
    // Not even where the owner is talked into binding it.
    const json = { identityUid: uid, roleUid: builtinRoleUid("owner") };
    await call(world.owner.token, `/roleBindings/${world.root}`, "POST", json);
    assert.equal((await call(token, `/groups/${world.root}`)).status, 403);
    assert.equal((await call(token, "/groups")).json.totalCount, "1");
  });

  it("accepts no invite that is for the victim, or for another organisation", async () => {
    const forVictim = await invite(world, { email: "victim@example.org" });
    const forAnybody = await invite(world, { singleUse: true });
    const own = await invite(world, { group: world.foreign, by: world.foreignOwner, email: "victim@example.org" });
    const { issuer } = world.people;
    const context = directoryContext();
    const claims = { aud: "evil", email: "victim@example.org", email_verified: true };
    for (const { code } of [forVictim, forAnybody, own]) {
      const signInRequest = { issuer, subject: "victim", claims, providerUid: evil.uid, invite: code, register: false };
      await assert.rejects(
        world.write((tx) => signIn(tx, signInRequest, context)),
        code === own.code ? /for an e-mail address/ : /accepting this invite/,
      );
    }
    const { store } = world.harness.app.installation;
    assert.ok(await store.read((tx) => tx.table(groupInviteKind).find(forAnybody.uid)), "it is still there for others");
    const good = await register(world, world.idToken({ sub: "victim", ...claims, aud: CLIENT }), {
      code: forVictim.code,
    });
    assert.equal(good.status, 200, good.text);
  });

  it("does not become the victim by an identity that matches it", async () => {
    const { issuer } = world.people;
    const mine = await world.assumable(
      { claimMatch: { issuer, subject: "victim", audience: "evil" } },
      { group: world.foreign },
    );
    const token = tokenOf(await world.exchange({ identity: mine }, createStolenToken()));
    assert.equal(claimsOf(token).sub, mine);
    for (const path of [`/groups/${world.root}`, `/identities/${victim.uid}`]) {
      assert.equal((await call(token, path)).status, 403, path);
    }
  });
});

describe("a token that fits several identities", () => {
  let ours: string;
  let theirs: string;
  before(async () => {
    ours = await world.workload("deploy", { role: "editor" });
    theirs = await world.workload("deploy", { group: world.foreign, role: "editor" });
  });
  const token = () => world.token({ sub: "deploy" });

  it("is valid for the named audience only", async () => {
    for (const [identity, group, other] of [
      [ours, world.root, world.foreign],
      [theirs, world.foreign, world.root],
    ] as const) {
      const bearer = tokenOf(await world.exchange({ identity }, token()));
      assert.equal(claimsOf(bearer).sub, identity);
      assert.deepEqual(
        [(await call(bearer, `/groups/${group}`)).status, (await call(bearer, `/groups/${other}`)).status],
        [200, 403],
      );
    }
  });

  it("is invalid where no audience is named", async () => {
    const unnamed = invalid(["identity", "name the identity to assume"]);
    assert.deepEqual((await world.exchange({}, token())).outcome, unnamed);
    assert.deepEqual((await world.exchange({ identity: "" }, token())).outcome, unnamed);
  });

  it("nor where the one that is named does not fit, although others would", async () => {
    const other = await world.workload("build");
    assert.deepEqual(
      (await world.exchange({ identity: other }, token())).outcome,
      permissionDenied(`assuming ${other}`),
    );
    assert.deepEqual(
      (await world.exchange({ identity: world.root }, token())).outcome,
      permissionDenied(`assuming ${world.root}`),
    );
    for (const identity of [[ours, theirs], [`${ours},${theirs}`]]) {
      assert.equal((await world.exchange({ identity }, token())).status, 400);
    }
  });
});

describe("keys that stand on an identity", () => {
  const pair = () => {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    return { keys: JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k" }] }), privateKey };
  };
  const createKeyedIdentity = (issuer: string, subject: string, issuerKeys: string, group = world.root) => {
    const expirationTime = new Date(Date.now() + 3_600_000).toISOString();
    return world.assumable({ staticKeys: { issuer, subject, issuerKeys, expirationTime } }, { group });
  };
  const token = (iss: string, sub: string, { privateKey }: ReturnType<typeof pair>, header: object = {}) => {
    const nowS = Math.floor(Date.now() / 1000);
    const claims = { iss, sub, aud: world.url, iat: nowS, exp: nowS + 60 };
    return signToken({ alg: "ES256", kid: "k", typ: "JWT", ...header }, claims, privateKey);
  };

  it("do not verify for another that has other keys for the same name", async () => {
    const [ours, evil] = [pair(), pair()];
    const issuer = "https://cluster.example";
    const [victim, mine] = [
      await createKeyedIdentity(issuer, "pod", ours.keys),
      await createKeyedIdentity(issuer, "pod", evil.keys, world.foreign),
    ];
    const forged = token(issuer, "pod", evil);
    assert.equal(claimsOf(tokenOf(await world.exchange({ identity: mine }, forged))).sub, mine);
    assert.deepEqual((await world.exchange({ identity: victim }, forged)).outcome, notAssumable(victim));
    assert.equal((await world.exchange({ identity: victim }, token(issuer, "pod", ours))).status, 200);
  });

  it("do not stand in for the keys of the issuer they are named after, nor those for them", async () => {
    const evil = pair();
    const { issuer } = world.workloads;
    const [victim, mine] = [
      await world.workload("prod"),
      await createKeyedIdentity(issuer, "prod", evil.keys, world.foreign),
    ];
    const forged = token(issuer, "prod", evil);
    for (let time = 0; time < 2; time++) {
      assert.equal((await world.exchange({ identity: mine }, forged)).status, 200);
      assert.deepEqual((await world.exchange({ identity: victim }, forged)).outcome, notAssumable(victim));
      assert.equal((await world.exchange({ identity: victim }, world.token({ sub: "prod" }))).status, 200);
      assert.deepEqual(
        (await world.exchange({ identity: mine }, world.token({ sub: "prod" }))).outcome,
        notAssumable(mine),
      );
    }
    const brought = { header: { jwk: JSON.parse(evil.keys).keys[0] } };
    assert.deepEqual(
      (await world.exchange({ identity: victim }, token(issuer, "prod", evil, brought.header))).outcome,
      unauthenticated(),
    );
  });
});

describe("tokens of this service", () => {
  const names = (): readonly string[] => [world.url, `${world.url}/`, world.url.replace("127.0.0.1", "localhost")];

  it("assume nothing, whatever identity names it as their issuer", async () => {
    const subject = world.owner.uid;
    const { store } = world.harness.app.installation;
    const rows = await store.read((tx) => tx.keys.list());
    const keys = rows
      .filter(({ publicJwk }) => publicJwk !== "")
      .map(({ publicJwk, kid }) => ({ ...JSON.parse(publicJwk ?? "{}"), kid }));
    assert.notEqual(keys.length, 0);
    const expirationTime = new Date(Date.now() + 3_600_000).toISOString();
    for (const issuer of names()) {
      const match = await world.assumable({ claimMatch: { issuer, subject } }, { role: "owner" });
      const anySubject = await world.assumable({ claimMatch: { issuer, subjectPattern: ".+", audiencePattern: ".+" } });
      const issuerKeys = JSON.stringify({ keys });
      const own = await world.assumable({
        staticKeys: { issuer, subject, issuerKeys, expirationTime, audiences: [world.url] },
      });
      for (const identity of [match, anySubject, own]) {
        assert.deepEqual((await world.exchange({ identity }, world.owner.token)).outcome, unauthenticated(), issuer);
        assert.deepEqual(
          (await register(world, world.owner.token, { identityId: identity })).outcome,
          unauthenticated(),
        );
      }
    }
  });

  it("nor prove a person, whatever provider names it", async () => {
    const group = world.root;
    for (const issuer of names()) {
      const uid = randomIds.newUid(group);
      const oidc = { issuer, clientId: world.url, groupsClaim: "" };
      const scim = { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" };
      const role = builtinRoleUid("owner");
      const row = {
        uid,
        groupUid: group,
        name: "loop",
        description: "",
        defaultRole: role,
        oidc,
        lacksDefaultRole: false,
        sealedSecret: "",
        scim,
      };
      await world.write((tx) => tx.table(identityProviderKind).insert({ ...row, createTimeMs: 1, updateTimeMs: 1 }));
      const outcome = (await world.exchange({ identity_provider: uid }, world.owner.token)).outcome;
      assert.deepEqual(outcome, unauthenticated(), issuer);
    }
  });
});
