// Providers that serve the claims about a person by UserInfo alone (OpenID Connect Core 1.0, section 5.3), which is the
// default of the provider of these tests: the login asks for what the ID token lacks, and for nothing else.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, afterEach, before, describe, it } from "node:test";
import { bootstrap } from "../../../src/iam/operator/bootstrap.js";
import { type SignIn, signIn } from "../../../src/iam/people/sign-in.js";
import { lacksClaims, pickAddedClaims } from "../../../src/issuer/oauth/user-info.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { groupMappingKind } from "../../../src/store/iam/group-mappings.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { directoryContext } from "../../support/directory-context.js";
import { USER_INFO } from "../../support/oidc-provider.js";
import { Agent, type LoginKit, PROGRAM, startLogin } from "./login-kit.js";

let count = 0;
const newEmail = () => `owner${++count}@example.org`;

/** A login with these claims of a new person, unless a subject is given. */
async function login(
  kit: LoginKit,
  claims: object,
  { subject = `person ${++count}`, ...more } = {} as Record<string, string>,
) {
  kit.provider.account = { subject, claims: { ...claims } };
  const query = new URLSearchParams({ exit: "redirect", redirect: `${PROGRAM}?token=true`, ...more });
  const agent = new Agent();
  const page = await agent.get(`${kit.url}/oauth?${query}`);
  const { program } = await agent.decide(page);
  const [error, description] = [program?.get("error"), program?.get("error_description") ?? ""];
  return { subject, page: page.text, token: program?.get("token") ?? undefined, error, description };
}

async function awaitOwner(kit: LoginKit, email: string): Promise<string> {
  const { group } = await kit.store.write((tx) =>
    bootstrap(tx, { org: `org${++count}.example`, awaitedOwner: { email } }, randomIds, Date.now()),
  );
  return group;
}

const isOwner = (kit: LoginKit, group: string, subject: string) =>
  kit.store.read(async (tx) => {
    const uid = personUid(kit.provider.issuer, subject);
    return (await tx.table(roleBindingKind).findSame(group, uid, builtinRoleUid("owner"))) !== undefined;
  });

const userInfoRequests = (kit: LoginKit) => kit.provider.requests.filter((path) => path === USER_INFO).length;

const payloadOf = (token: string) => Buffer.from(token.split(".")[1] ?? "", "base64url").toString();

function answerJson(body: object, status = 200): (res: ServerResponse) => void {
  return (res) => res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

for (const userInfo of ["json", "jwt"] as const) {
  describe(`a provider that serves claims by UserInfo as ${userInfo}`, () => {
    let kit: LoginKit;
    before(async () => {
      kit = await startLogin(() => ({ registration: "invite" }), { userInfo });
    });
    after(() => kit?.stop());

    it("signs in the owner who is awaited by e-mail address", async () => {
      const email = newEmail();
      const group = await awaitOwner(kit, email);
      const { page, subject, token } = await login(kit, { email, email_verified: true, name: "Ada" });
      assert.match(page, new RegExp(`Ada \\(${email}\\)`), "the consent page names the person");
      assert.ok(token);
      assert.equal(await isOwner(kit, group, subject), true);
      const person = await kit.store.read((tx) => tx.table(identityKind).find(personUid(kit.provider.issuer, subject)));
      assert.deepEqual([person?.email, person?.name], [email, "Ada"]);
    });

    it("signs in nobody whose address it has not confirmed, and says which claim is missing", async () => {
      const email = newEmail();
      const group = await awaitOwner(kit, email);
      for (const [claims, missing] of [
        [{ email, email_verified: false }, "email_verified"],
        [{ email, email_verified: "true" }, "email_verified"],
        [{ name: "Eve" }, "email"],
      ] as const) {
        const { error, description, subject } = await login(kit, claims);
        assert.equal(error, "account not found");
        assert.match(description, new RegExp(`your e-mail address: .*\\(claim ${missing}\\)$`));
        assert.match(
          kit.problems.at(-1) ?? "",
          new RegExp(`neither the ID token nor UserInfo has ${missing}:.*docs/login`),
        );
        assert.equal(await isOwner(kit, group, subject), false);
      }
    });
  });
}

describe("UserInfo", () => {
  let kit: LoginKit;
  before(async () => {
    kit = await startLogin(() => ({ registration: "open" }), { userInfo: "json" });
  });
  afterEach(() => {
    kit.provider.answerUserInfo = undefined;
  });
  after(() => kit?.stop());

  it("of another subject ends the login", async () => {
    const email = newEmail();
    const group = await awaitOwner(kit, email);
    kit.provider.answerUserInfo = answerJson({ sub: "somebody else", email, email_verified: true });
    const { error, token, subject } = await login(kit, {});
    assert.deepEqual([error, token], ["server_error", undefined]);
    assert.match(kit.problems.at(-1) ?? "", /failed: .*ATTRIBUTE_COMPARISON/);
    assert.equal(
      await kit.store.read((tx) => tx.table(identityKind).find(personUid(kit.provider.issuer, subject))),
      undefined,
    );
    // The control: the same response about the person.
    kit.provider.answerUserInfo = answerJson({ sub: subject, email, email_verified: true });
    assert.ok((await login(kit, {}, { subject })).token);
    assert.equal(await isOwner(kit, group, subject), true);
  });

  const failures: Readonly<Record<string, (res: ServerResponse) => unknown>> = {
    "an error": answerJson({ error: "server_error" }, 500),
    "a refused token": (res) => res.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' }).end(),
    "a redirect": (res) => res.writeHead(302, { location: "/me2" }).end(),
    "no subject": answerJson({ email: "owner@example.org", email_verified: true }),
    "no JSON": (res) => res.writeHead(200, { "content-type": "application/json" }).end("{"),
    "a body without an end": (res) => res.writeHead(200, { "content-type": "application/json" }).flushHeaders(),
    "a body of 200 KiB": (res) =>
      res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ pad: "x".repeat(200 * 1024) })),
    "a JWT without a signature": (res) =>
      res.writeHead(200, { "content-type": "application/jwt" }).end(
        [{ alg: "none" }, { sub: "x", email: "owner@example.org", email_verified: true }]
          .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
          .join(".")
          .concat("."),
      ),
    "a closed connection": (res) => res.destroy(),
  };
  for (const [what, answer] of Object.entries(failures)) {
    it(`with ${what} gives no claims, and the stored address stays`, async () => {
      const email = newEmail();
      const { subject } = await login(kit, { email, email_verified: true });
      const other = newEmail();
      const group = await awaitOwner(kit, other);
      kit.provider.answerUserInfo = answer;
      const { token } = await login(kit, { email: other, email_verified: true }, { subject });
      assert.ok(token, "people who are registered sign in by their subject");
      assert.equal(await isOwner(kit, group, subject), false);
      assert.match(kit.problems.at(-1) ?? "", /^the UserInfo of test is not used: /);
      const stored = await kit.store.read((tx) => tx.table(identityKind).find(personUid(kit.provider.issuer, subject)));
      assert.equal(stored?.email, email);
    });
  }

  it("that cannot be read takes no confirmation away, whatever the ID token has of the address", async () => {
    const email = newEmail();
    const stored = async (subject: string) => {
      const person = await kit.store.read((tx) => tx.table(identityKind).find(personUid(kit.provider.issuer, subject)));
      return [person?.email, person?.emailUnverified];
    };
    const signInAgain = async (subject: string, claims: SignIn["claims"], isPartial: boolean) => {
      const login = { issuer: kit.provider.issuer, subject, claims, isPartial, register: true };
      await kit.store.write((tx) => signIn(tx, login, directoryContext()));
      return stored(subject);
    };
    const { subject } = await login(kit, { email, email_verified: true });
    assert.deepEqual(await signInAgain(subject, {}, true), [email, ""]);
    assert.deepEqual(await signInAgain(subject, { email }, true), [email, ""]);
    assert.deepEqual(await signInAgain(subject, { email: newEmail() }, true), [email, ""]);
    assert.deepEqual(await signInAgain(subject, { email, email_verified: null }, true), [email, ""]);
    // The controls: what the provider does state counts, and so does an address where none is confirmed.
    assert.deepEqual(await signInAgain(subject, { email, email_verified: false }, true), ["", email]);
    const other = newEmail();
    assert.deepEqual(await signInAgain(subject, { email: other }, true), ["", other]);
    assert.deepEqual(await signInAgain(subject, { email, email_verified: true }, true), [email, ""]);
    assert.deepEqual(await signInAgain(subject, { email }, false), ["", email]);
  });

  it("has the groups of an organisation's provider", async () => {
    const { group, provider } = await kit.organisation(`tenant${++count}.example`);
    const mapping = randomIds.newUid(provider);
    await kit.store.write((tx) =>
      tx.table(groupMappingKind).insert({
        uid: mapping,
        providerUid: provider,
        externalGroupId: "platform",
        ...{ roleUid: builtinRoleUid("editor"), scope: group, createdBy: null, createTimeMs: 1_000 },
      }),
    );
    const { token = "" } = await login(kit, { groups: ["platform", "other"] }, { idp_id: provider });
    assert.ok(payloadOf(token).includes(mapping), "the token has the mapping");
    const { token: without = "" } = await login(kit, { groups: ["other"] }, { idp_id: provider });
    assert.ok(
      !Buffer.from(without.split(".")[1] ?? "", "base64url")
        .toString()
        .includes(mapping),
    );
  });
});

describe("a provider whose ID tokens have all claims", () => {
  let kit: LoginKit;
  before(async () => {
    kit = await startLogin(() => ({ registration: "invite" }));
  });
  after(() => kit?.stop());

  it("is not asked for UserInfo", async () => {
    const email = newEmail();
    const group = await awaitOwner(kit, email);
    kit.provider.answerUserInfo = answerJson({ sub: "somebody else" });
    const { subject, token } = await login(kit, { email, email_verified: true, name: "Ada" });
    assert.ok(token);
    assert.equal(await isOwner(kit, group, subject), true);
    assert.equal(userInfoRequests(kit), 0);
  });
});

describe("the claims of UserInfo", () => {
  const request = { scopes: ["openid", "email", "profile"], groupsClaim: "groups" };
  const address = { email: "a@example.org", email_verified: true };
  const other = { email: "b@example.org", email_verified: true };
  const rows: readonly [what: string, claims: object, userInfo: object, added: object][] = [
    ["are taken where the ID token has none", {}, address, address],
    ["replace none of the ID token", { ...address, name: "A" }, { ...other, name: "B" }, {}],
    ["do not confirm another address", { email: "a@example.org" }, other, {}],
    ["confirm the same address", { email: "a@example.org" }, address, { email_verified: true }],
    ["confirm none that the ID token does not", { ...address, email_verified: false }, address, {}],
    [
      "confirm no address if the ID token says no",
      { email_verified: false },
      address,
      { ...address, email_verified: false },
    ],
    [
      "are confirmed by themselves alone",
      { email_verified: true },
      { email: "a@example.org" },
      { email: "a@example.org", email_verified: false },
    ],
    ["are confirmed by true alone", {}, { ...address, email_verified: "true" }, { ...address, email_verified: false }],
    ["are no others", {}, { sub: "s", aud: "x", iss: "y", admin: true }, {}],
    ["have groups", {}, { groups: ["a"] }, { groups: ["a"] }],
    ["replace no groups", { groups: [] }, { groups: ["a"] }, {}],
    ["stand for null", { name: null }, { name: "B" }, { name: "B" }],
  ];
  for (const [what, claims, userInfo, added] of rows) {
    it(what, () => assert.deepEqual(pickAddedClaims(request, { ...claims }, { ...userInfo }), added));
  }

  it("are asked for only if the login uses them", () => {
    const all = { ...address, name: "A", groups: [] };
    assert.equal(lacksClaims(request, all), false);
    for (const name of Object.keys(all)) assert.equal(lacksClaims(request, { ...all, [name]: undefined }), true, name);
    assert.equal(lacksClaims({ scopes: ["openid"] }, {}), false);
    assert.equal(lacksClaims({ scopes: ["openid", "email"] }, address), false);
  });

  it("are limited", () => {
    assert.throws(() => pickAddedClaims(request, {}, { groups: Array(5_000).fill("a group") }), /too long/);
  });
});
