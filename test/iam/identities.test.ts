// Identities over REST: what changes and what lists find. What requests may say is in test/contract/rules.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { randomIds } from "../../src/kernel/ids.js";
import { invalid } from "../contract/expectations.js";
import { claimMatch, type IamWorld, startIamWorld } from "./iam-world.js";

const DAY_MS = 86_400_000;

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const create = (body: object) => world.owner.rest("POST", `/identities/${world.child}`, body);
const createIdentity = async (body: object): Promise<string> => {
  const { status, json, text } = await create(body);
  assert.equal(status, 200, text);
  return String(json?.uid);
};
const get = async (uid: string) => (await world.owner.rest("GET", `/identities/${uid}`)).json ?? {};
const awsIdentity = { awsAccount: "123456789012", arn: "arn:aws:sts::123456789012:assumed-role/r/s", userId: "AROA:s" };
const staticKeys = { issuer: "https://keys.example", subject: "s", issuerKeys: "keys" };

describe("a new identity", () => {
  it("is created with mutable fields only", async () => {
    const { json } = await create({
      uid: "mine",
      name: "n",
      company: "c",
      email: "x@y",
      createTime: "2000-01-01T00:00:00Z",
      awsIdentity,
    });
    assert.match(String(json?.uid), new RegExp(`^${world.child}/[0-9a-f]{16}$`));
    assert.deepEqual([json?.company, json?.email, json?.awsIdentity], ["c", undefined, awsIdentity]);
    assert.ok(Date.parse(String(json?.createTime)) > Date.parse("2020-01-01"));
  });

  it("needs a group that is there", async () => {
    const { status, json } = await world.owner.rest("POST", `/identities/${randomIds.newUid(world.root)}`, {
      name: "n",
      claimMatch: claimMatch(),
    });
    assert.equal(status, 404);
    assert.match(String(json?.message), /^Not found: group: there is no group /);
  });

  it("limits static keys to a year", async () => {
    const rule = "staticKeys.expirationTime must be in the future and at most 365 days ahead";
    const at = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString();
    const cases: readonly [days: number, good: boolean][] = [
      [-1, false],
      [1, true],
      [364.9, true],
      [366, false],
    ];
    for (const [days, good] of cases) {
      const { outcome } = await create({ name: "n", staticKeys: { ...staticKeys, expirationTime: at(days) } });
      assert.deepEqual(
        good ? outcome.code : outcome,
        good ? "OK" : invalid(["staticKeys.expirationTime", rule]),
        `${days} days`,
      );
    }
    const { json } = await create({ name: "n", staticKeys });
    const { expirationTime } = (json?.staticKeys ?? {}) as { expirationTime: string };
    // Clients that keep times in whole seconds send back what they have.
    const seconds = { ...staticKeys, expirationTime: expirationTime.replace(/\.\d+Z/, "Z") };
    const same = await world.owner.rest("PATCH", `/identities/${json?.uid}`, { staticKeys: seconds });
    assert.deepEqual(same.json?.staticKeys, json?.staticKeys);
    assert.ok(Math.abs(Date.parse(expirationTime) - Date.now() - 365 * DAY_MS) < 60_000);
  });
});

describe("an update of an identity", () => {
  const cases: readonly { name: string; mask?: string; body: object; after: object }[] = [
    { name: "the keys present", body: { description: "" }, after: { name: "n", description: "", company: "c" } },
    {
      name: "what the mask names alone",
      mask: "company",
      body: { company: "z", name: "ignored" },
      after: { name: "n", company: "z" },
    },
    {
      name: "what the mask names and the body lacks is cleared",
      mask: "description,company",
      body: {},
      after: { description: "", company: undefined },
    },
    {
      name: "one claim, the rest stays",
      mask: "claimMatch.subject",
      body: { claimMatch: { subject: "new" } },
      after: { claimMatch: { issuer: "https://a.example", subject: "new" } },
    },
    {
      name: "a subject gives way to a pattern",
      mask: "claimMatch.subjectPattern",
      body: { claimMatch: { subjectPattern: "x.*" } },
      after: { claimMatch: { issuer: "https://a.example", subjectPattern: "x.*" } },
    },
    {
      name: "everything",
      mask: "*",
      body: { name: "m", claimMatch: { issuer: "https://b.example", subject: "t" } },
      after: {
        ...{ name: "m", description: "", company: undefined },
        claimMatch: { issuer: "https://b.example", subject: "t" },
      },
    },
    {
      name: "output-only fields are ignored",
      mask: "uid,email,createTime,name",
      body: { name: "m", email: "x@y" },
      after: { name: "m", email: undefined },
    },
    { name: "an AWS account instead of claims", body: { awsIdentity }, after: { awsIdentity, claimMatch: undefined } },
  ];
  for (const { name, mask, body, after } of cases) {
    it(`changes ${name}`, async () => {
      const uid = await createIdentity({
        name: "n",
        description: "d",
        company: "c",
        claimMatch: { issuer: "https://a.example", subject: "s" },
      });
      const query = mask === undefined ? "" : `?updateMask=${mask}`;
      const { status, json, text } = await world.owner.rest("PATCH", `/identities/${uid}${query}`, body);
      assert.equal(status, 200, text);
      assert.deepEqual(json, await get(uid), "the answer is what is stored");
      for (const [field, value] of Object.entries(after)) assert.deepEqual(json?.[field], value, field);
    });
  }
});

describe("lists of identities", () => {
  it("filters by name, kind and parent", async () => {
    const group = await world.group();
    const make = async (name: string, how: object) => {
      const { json } = await world.owner.rest("POST", `/identities/${group}`, { name, ...how });
      return String(json?.uid);
    };
    const [claims, keys, aws, component] = [
      await make("a", { claimMatch: claimMatch() }),
      await make("b", { staticKeys }),
      await make("a", { awsIdentity }),
      await make("c", { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" }),
    ];
    const here = `uidp.children_of=${group}`;
    const rows: readonly [query: string, uids: readonly (string | undefined)[]][] = [
      [here, [claims, keys, aws, component]],
      [`${here}&name=a`, [claims, aws]],
      [`${here}&relationship_type=RELATIONSHIP_TYPE_CLAIM_MATCH`, [claims]],
      [`${here}&relationshipType=RELATIONSHIP_TYPE_STATIC`, [keys]],
      [`${here}&relationship_type=RELATIONSHIP_TYPE_AWS_IDENTITY&name=a`, [aws]],
      [`${here}&relationship_type=RELATIONSHIP_TYPE_SERVICE_PRINCIPAL`, [component]],
      [`${here}&relationship_type=RELATIONSHIP_TYPE_UNSPECIFIED`, [claims, keys, aws, component]],
      [`uidp.ids=${keys}&uidp.ids=${aws}&name=b`, [keys]],
    ];
    for (const [query, uids] of rows) {
      const { json } = await world.owner.rest("GET", `/identities?${query}`);
      const found = ((json?.identities ?? []) as { uid: string }[]).map(({ uid }) => uid);
      assert.deepEqual([found, json?.totalCount], [[...uids].sort(), String(uids.length)], query);
    }
    assert.equal((await world.owner.rest("GET", "/identities?relationship_type=NONE")).status, 400);
    assert.equal((await world.owner.rest("GET", "/identities?order_by=company")).status, 400);
  });

  it("never hold people, whose uids are a function of issuer and subject", async () => {
    const lookup = (subject: string) =>
      world.owner.rest("GET", `/identities:lookupIdentity?issuer=https://i.example&subject=${subject}`);
    const [one, again, other] = [await lookup("a"), await lookup("a"), await lookup("b")];
    assert.match(String(one.json?.uid), /^[0-9a-f]{40}$/);
    assert.deepEqual([one.text, one.text === other.text], [again.text, false]);
    assert.equal((await world.owner.rest("GET", "/identities:lookupIdentity?issuer=x")).status, 400);
    const another = await world.createBound("owner");
    assert.equal((await another.rest("GET", `/identities/${world.owner.uid}`)).status, 403);
  });
});

describe("what callers tell of themselves", () => {
  it("changes for them alone", async () => {
    const who = await world.createBound("viewer");
    const patch = (body: object, call = who.rest) => call("PATCH", "/identities:updateIdentityMetadata", body);
    const first = await patch({ identityMetadata: { company: "c", updatesOptIn: true, givenName: "no" } });
    assert.deepEqual(
      [first.json?.uid, first.json?.company, first.json?.updatesOptIn, first.json?.givenName],
      [who.uid, "c", true, ""],
    );
    const second = await patch({ identityMetadata: { product: "p" }, updateMask: "product" });
    assert.deepEqual([second.json?.company, second.json?.product], ["c", "p"]);
    assert.equal((await patch({ identityMetadata: { company: "a\u0001" } })).status, 400);
    const another = await patch({ identityMetadata: { uid: who.uid, company: "theirs" } }, world.owner.rest);
    assert.equal(another.json?.uid, world.owner.uid);
    assert.equal((await patch({ identityMetadata: {} })).json?.company, "c");
  });
});
