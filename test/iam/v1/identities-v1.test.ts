// Identities in version 1, beside version 2: over REST and gRPC.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { Identities, IdentitySchema, ServicePrincipalSchema } from "#gen/chainguard/platform/iam/identity_pb.js";
import { ServicePrincipalSchema as ServicePrincipalV2Schema } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { type Client, Code, ConnectError, type Connection, connectTo, staticToken } from "../../../src/client/index.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { invalid, permissionDenied } from "../../contract/expectations.js";
import { type Rest, restAs } from "../../contract/rest.js";
import { identityRow } from "../../support/rows.js";
import { claimMatch, type IamWorld, noClaims, type Somebody, startIamWorld } from "../iam-world.js";

type Fields = Readonly<Record<string, unknown>>;

const DAY_MS = 86_400_000;
const tomorrow = new Date(new Date(Date.now() + DAY_MS).setMilliseconds(500)).toISOString();
const keys = { issuer: "https://keys.example", subject: "s", issuerKeys: "keys" };
const aws = { awsAccount: "123456789012", arn: "arn:aws:sts::123456789012:assumed-role/r/s", userId: "AROA:s" };

let world: IamWorld;
let v1: Rest;
let v2: Rest;
let grpc: Client<typeof Identities>;
const connections: Connection[] = [];
before(async () => {
  world = await startIamWorld();
  v1 = restV1(world.owner);
  v2 = world.owner.rest;
  grpc = grpcAs(world.owner);
});
after(async () => {
  for (const connection of connections) connection.close();
  await world.stop();
});

const restV1 = ({ token }: Somebody) => restAs(world.url, token, "/iam/v1");
const grpcAs = ({ token }: Somebody) => {
  const connection = connectTo({ baseUrl: world.url, token: staticToken(token) });
  connections.push(connection);
  return connection.client(Identities);
};

const response = async (call: ReturnType<Rest>): Promise<Fields> => {
  const { status, json, text } = await call;
  assert.equal(status, 200, text);
  return json ?? {};
};
const createIdentity = async (body: object, by = v1): Promise<string> => {
  const { id, uid = id } = await response(by("POST", `/identities/${world.child}`, body));
  return String(uid);
};
const inV2 = (id: string) => response(v2("GET", `/identities/${id}`));
const readList = async (query: string, by = v1) =>
  (await response(by("GET", `/identities?${query}`))).items as Fields[];
const inV1 = async (id: string): Promise<Fields> => (await readList(`id=${id}`))[0] ?? {};
const whole = (body: object) => fromJson(IdentitySchema, body as JsonValue);
const idsOf = (items: readonly { readonly id?: unknown }[]) => items.map(({ id }) => id);
const relationships = ["claimMatch", "static", "staticKeys", "awsIdentity", "servicePrincipal"];
const relationshipOf = (shown: Fields) =>
  withoutEmpties(Object.fromEntries(Object.entries(shown).filter(([field]) => relationships.includes(field))));
// Clients of gRPC print no empty maps, REST does.
const withoutEmpties = (json: object): Fields =>
  JSON.parse(JSON.stringify(json, (_, value) => (JSON.stringify(value) === "{}" ? undefined : value)));

const inFirst = new Set<number>(ServicePrincipalSchema.values.map(({ number }) => number));
const onlyInV2 = ServicePrincipalV2Schema.values.filter(({ number }) => !inFirst.has(number));

describe("a relationship is the same in both versions", () => {
  const full = {
    issuer: "https://a.example",
    subject: "s",
    audience: "a",
    claims: { c: "x" },
    claimPatterns: { d: "y" },
  };
  const patterns = { issuerPattern: "https://a\\.example/.*", subjectPattern: "s.*", audiencePattern: "a.*" };
  const { userId, arn, awsAccount } = aws;
  const awsPatterns = { awsAccount, arnPattern: `${arn}.*`, userIdPattern: `${userId}.*` };
  const [first, second] = [
    { static: { ...keys, expiration: tomorrow, audiences: ["a"] } },
    { staticKeys: { ...keys, expirationTime: tomorrow, audiences: ["a"] } },
  ];
  const kinds: readonly { name: string; first: object; second?: object }[] = [
    { name: "claims", first: { claimMatch: full } },
    { name: "patterns of claims", first: { claimMatch: patterns } },
    { name: "static keys", first, second },
    { name: "an AWS user", first: { awsIdentity: aws } },
    { name: "patterns of AWS", first: { awsIdentity: awsPatterns } },
    ...ServicePrincipalSchema.values.slice(1).map(({ name }) => ({
      name: `the component ${name}`,
      first: { servicePrincipal: name },
      second: { servicePrincipal: `SERVICE_PRINCIPAL_${name}` },
    })),
    ...onlyInV2.map(({ name, number }) => ({
      name: `the component ${name}, by its number`,
      first: { servicePrincipal: number },
      second: { servicePrincipal: name },
    })),
  ];
  for (const { name, first, second = first } of kinds) {
    it(name, async () => {
      const fromFirst = await createIdentity({ name: "n", ...first });
      assert.deepEqual(relationshipOf(await inV2(fromFirst)), second);
      const fromSecond = await createIdentity({ name: "n", ...second }, v2);
      assert.deepEqual(relationshipOf(await inV1(fromSecond)), first);
      const { id } = await grpc.create({ parentId: world.child, identity: whole({ name: "n", ...first }) });
      assert.deepEqual(relationshipOf(await inV2(id)), second);
      const { items } = await grpc.list({ id: fromSecond });
      assert.deepEqual(
        items.map((one) => relationshipOf(toJson(IdentitySchema, one) as JsonObject)),
        [first],
      );
    });
  }

  it("and version 1 has names for every component of version 2 but the sandbox", () => {
    assert.deepEqual(
      onlyInV2.map(({ name }) => name),
      ["SERVICE_PRINCIPAL_SANDBOX"],
    );
  });
});

describe("an update replaces", () => {
  const before = () =>
    createIdentity({ name: "n", description: "d", company: "c", claimMatch: { ...claimMatch(), audience: "a" } }, v2);

  for (const [name, claims] of [
    ["its claims", { claimMatch: claimMatch() }],
    ["claims by an AWS user", { awsIdentity: aws }],
  ] as const) {
    it(`${name}, resets what is left out and keeps what it does not know`, async () => {
      const ids = [await before(), await before()] as const;
      const rest = await response(
        v1("PUT", `/identities/${ids[0]}`, { name: "m", createdAt: tomorrow, lastSeen: tomorrow, ...claims }),
      );
      const rpc = toJson(IdentitySchema, await grpc.update(whole({ id: ids[1], name: "m", ...claims }))) as JsonObject;
      // Whole seconds have no fraction there.
      for (const time of ["createdAt", "updatedAt", "lastSeen"]) rpc[time] = new Date(String(rpc[time])).toISOString();
      for (const [i, shown] of [rest, { description: "", ...rpc }].entries()) {
        const { uid, name: called, description, company, ...now } = await inV2(ids[i] ?? "");
        assert.deepEqual([called, description, company, relationshipOf(now)], ["m", "", "c", claims]);
        const times = { createdAt: now.createTime, updatedAt: now.updateTime, lastSeen: now.lastSeenTime };
        assert.deepEqual(
          { ...shown, ...relationshipOf(shown) },
          { id: uid, name: "m", description: "", ...times, ...claims },
        );
      }
    });
  }

  it("is visible in both versions", async () => {
    const id = await createIdentity({ name: "n", servicePrincipal: "INGESTER" });
    await response(v2("PATCH", `/identities/${id}`, { description: "by the second" }));
    assert.equal((await inV1(id)).description, "by the second");
    await response(v1("PUT", `/identities/${id}`, { name: "first", servicePrincipal: "COSIGNED" }));
    const { name, description, servicePrincipal } = await inV2(id);
    assert.deepEqual([name, description, servicePrincipal], ["first", "", "SERVICE_PRINCIPAL_COSIGNED"]);
  });

  it("renews keys for a year by default", async () => {
    const id = await createIdentity({ name: "n", static: { ...keys, expiration: tomorrow } });
    const shown = await response(v1("PUT", `/identities/${id}`, { name: "n", static: keys }));
    const { expiration } = shown.static as { expiration: string };
    assert.ok(Math.abs(Date.parse(expiration) - Date.now() - 365 * DAY_MS) < 60_000, expiration);
  });
});

describe("errors name the fields of version 1", () => {
  const uidRule = (field: string) => `${field} must be a uid, such as the service assigns`;
  const name = "name must match ^[a-z0-9 ._-]{1,}$: name is required";
  const late = "static.expiration must be in the future and at most 365 days ahead";
  const post = (body: object) => () => v1("POST", `/identities/${world.child}`, body);
  const get = (query: string) => () => v1("GET", `/identities${query}`);
  const past = "2020-01-01T00:00:00Z";
  const [noKeys, oldKeys] = [{ static: { ...keys, issuerKeys: "" } }, { static: { ...keys, expiration: past } }];
  const none = { servicePrincipal: "UNKNOWN" };
  const cases: readonly [what: string, call: () => ReturnType<Rest>, field: string, rule: string][] = [
    ["a name", post({ servicePrincipal: "INGESTER" }), "name", name],
    ["no keys", post({ name: "n", ...noKeys }), "static", "static.issuerKeys is required"],
    ["an expired key", post({ name: "n", ...oldKeys }), "static.expiration", late],
    [
      "no component",
      post({ name: "n", ...none }),
      "servicePrincipal",
      "servicePrincipal must name a service principal",
    ],
    ["a lookup of nobody", get("/lookup?issuer=x"), "subject", "subject is required"],
    ["an id that is none", get("?id=x"), "id", "id must be an id, such as the service assigns"],
    ["a place that is none", get("?uidp.childrenOf=x"), "uidp.childrenOf", uidRule("uidp.childrenOf")],
    // The path of another method in version 2's way: here it is the uid of an identity.
    ["metadata", () => v1("PUT", "/identities/metadata", { name: "n" }), "id", uidRule("id")],
  ];
  for (const [what, call, field, rule] of cases) {
    it(what, async () => assert.deepEqual((await call()).outcome, invalid([field, rule])));
  }

  const without = "relationship must be one of claimMatch, static, awsIdentity, servicePrincipal";
  const fixed = "relationship cannot change to or from static and servicePrincipal";
  for (const [what, from, to, rule] of [
    ["no relationship", { claimMatch: claimMatch() }, {}, without],
    ["keys instead of claims", { claimMatch: claimMatch() }, { static: keys }, fixed],
    ["claims instead of a component", { servicePrincipal: "INGESTER" }, { claimMatch: claimMatch() }, fixed],
  ] as const) {
    it(`${what}, in an update that changes nothing`, async () => {
      const id = await createIdentity({ name: "n", ...from });
      const unchanged = await inV1(id);
      const { outcome } = await v1("PUT", `/identities/${id}`, { name: "m", ...to });
      assert.deepEqual(outcome, invalid(["relationship", rule]));
      assert.deepEqual(await inV1(id), unchanged);
    });
  }
});

describe("callers who change how an identity is assumed", () => {
  for (const [what, more] of [
    ["holds what it holds", false],
    ["cannot gain by it", true],
  ] as const) {
    it(what, async () => {
      const who = await world.caller(["identity.update", "role_bindings.list", "groups.list"]);
      const id = await world.identity();
      const roleUid = await world.role(more ? ["repo.delete"] : ["groups.list"]);
      await response(v2("POST", `/roleBindings/${world.grandchild}`, { identityUid: id, roleUid }));
      const unchanged = await inV1(id);
      const body = { name: "n", claimMatch: claimMatch() };
      const { outcome } = await restV1(who)("PUT", `/identities/${id}`, body);
      const lacks = permissionDenied(`granting rights at ${world.grandchild} that the caller lacks there`);
      assert.deepEqual(more ? outcome : outcome.code, more ? lacks : "OK");
      const call = grpcAs(who).update(whole({ id, ...body }));
      if (more) await assert.rejects(call, (error) => ConnectError.from(error).code === Code.PermissionDenied);
      else await call;
      const now = await inV1(id);
      if (more) assert.deepEqual(now, unchanged);
      else assert.deepEqual(now.claimMatch, { ...body.claimMatch, ...noClaims });
    });
  }

  it("not callers who change other fields and send the relationship unchanged", async () => {
    const who = await world.caller(["identity.update", "identity.list"]);
    const id = await world.identity();
    const roleUid = await world.role(["repo.delete"]);
    await response(v2("POST", `/roleBindings/${world.grandchild}`, { identityUid: id, roleUid }));
    const { claimMatch: same } = await inV1(id);
    const renamed = await response(restV1(who)("PUT", `/identities/${id}`, { name: "renamed", claimMatch: same }));
    assert.deepEqual([renamed.name, renamed.claimMatch], ["renamed", same]);
  });
});

describe("lists", () => {
  it("find a new resource by id, and are empty for an unknown one", async () => {
    const id = await createIdentity({ name: "n", static: keys });
    const shown = ["id", "name", "description", "createdAt", "updatedAt", "lastSeen", "static"];
    assert.deepEqual(Object.keys(await inV1(id)), shown);
    assert.deepEqual(await readList(`id=${randomIds.newUid(world.child)}`), []);
    assert.deepEqual((await grpc.list({ id: randomIds.newUid(world.child) })).items, []);
  });

  it("show when an identity was created, updated and last seen", async () => {
    const id = randomIds.newUid(world.child);
    const times = { createTimeMs: 1_000, updateTimeMs: 2_000, lastSeenTimeMs: 3_000 };
    await world.write((tx) => tx.table(identityKind).insert(identityRow(id, times)));
    const { createdAt, updatedAt, lastSeen } = await inV1(id);
    const told = [createdAt, updatedAt, lastSeen].map((time) => Date.parse(String(time)));
    assert.deepEqual(told, Object.values(times));
  });

  it("combine filters by group, and hide rows of others", async () => {
    const outer = await world.group();
    const inner = await world.group(outer);
    const [a, b] = [await world.identity(outer), await world.identity(inner)];
    const both = [a, b].sort();
    const inside = await world.createBound("viewer", inner);
    const [all, other, within] = [v1, restV1(world.foreignOwner), restV1(inside)];
    const rows: readonly [by: Rest, query: string, ids: readonly string[]][] = [
      [all, `uidp.descendants_of=${outer}`, both],
      [all, `uidp.children_of=${outer}`, [a]],
      [all, `uidp.childrenOf=${outer}&id=${b}`, []],
      [all, `uidp.ids=${a}&id=${a}`, [a]],
      [within, `uidp.descendantsOf=${outer}`, [b]],
      [other, `uidp.descendantsOf=${outer}`, []],
      [other, `id=${a}`, []],
      [other, "", []],
    ];
    for (const [by, query, ids] of rows) {
      assert.deepEqual(idsOf(await readList(query, by)), ids, query);
    }
    const { items } = await grpc.list({ uidp: { descendantsOf: outer } });
    assert.deepEqual(idsOf(items), both);
    assert.deepEqual((await grpcAs(world.foreignOwner).list({})).items, []);
    const body = { name: "theirs", claimMatch: claimMatch() };
    assert.deepEqual(
      (await other("PUT", `/identities/${a}`, body)).outcome,
      permissionDenied(`identity.update at ${a}`),
    );
    assert.deepEqual(
      (await other("POST", `/identities/${outer}`, body)).outcome,
      permissionDenied(`identity.create at ${outer}`),
    );
    assert.deepEqual((await other("DELETE", `/identities/${a}`)).outcome, permissionDenied(`identity.delete at ${a}`));
  });
});

describe("lookups and deletions", () => {
  it("a lookup returns the id alone", async () => {
    const { uid } = await response(v2("GET", "/identities:lookupIdentity?issuer=https://i.example&subject=a"));
    const query = "issuer=https://i.example&subject=a";
    assert.deepEqual(await response(v1("GET", `/identities/lookup?${query}`)), { id: uid, name: "", description: "" });
    const shown = await grpc.lookup({ issuer: "https://i.example", subject: "a" });
    assert.deepEqual(toJson(IdentitySchema, shown), { id: uid });
  });

  it("a deletion holds in both versions, and a second one has the error of version 2", async () => {
    const [one, other] = [
      await createIdentity({ name: "n", static: keys }),
      await createIdentity({ name: "n", staticKeys: keys }, v2),
    ];
    assert.equal((await v1("DELETE", `/identities/${one}`)).text, "");
    await response(v2("DELETE", `/identities/${other}`));
    assert.deepEqual(await inV1(other), {});
    assert.equal((await v2("GET", `/identities/${one}`)).status, 404);
    assert.deepEqual(
      (await v1("DELETE", `/identities/${one}`)).outcome,
      (await v2("DELETE", `/identities/${one}`)).outcome,
    );
    await assert.rejects(grpc.delete({ id: one }), (error) => ConnectError.from(error).code === Code.NotFound);
  });
});
