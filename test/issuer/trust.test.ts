// TrustService, and what it changes at every door: conditions of identities and issuer guards.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fromJson, type JsonObject } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { ConditionSchema } from "#gen/arbor/trust/v1/trust_pb.js";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { conditionsToJson } from "../../src/iam/identities/conditions.js";
import { randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { OLDEST_VERSION } from "../../src/store/version.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { askToken } from "../registry/token-kit.js";
import { type LocalIssuer, signToken, startLocalIssuer } from "../support/local-issuer.js";
import { createRandom } from "../support/openapi/random.js";
import { invite, register } from "./auth-world.js";
import { type Answer, ask, queryOf } from "./sts/ask.js";
import { modelHolds } from "./sts/condition-model.js";
import { type ExchangeWorld, startExchangeWorld } from "./sts/exchange-world.js";
import { randomCondition, randomObject } from "./sts/random-conditions.js";

const PAIRS = Number(process.env.TEST_ARBOR_DOOR_PAIRS ?? 25);
const SUBJECT = "repo:acme/app";

let world: ExchangeWorld;
let stranger: LocalIssuer;
/** Of an invite that any number of identities may accept. */
let code: string;
const lines: string[] = [];

before(async () => {
  const logger = createLogger("info", { write: (line) => void lines.push(line) });
  world = await startExchangeWorld({ accessLog: "all" }, { logger });
  stranger = await startLocalIssuer();
  ({ code } = await invite(world));
});

after(async () => {
  await world?.stop();
  await stranger?.stop();
});

const call = (method: string, path: string, json?: object, bearer = world.owner.token): Promise<Answer> =>
  ask(world.url, `/trust/v1${path}`, { method, bearer, ...(json && { json }) });
const setConditions = (uid: string, conditions: readonly object[], bearer?: string) =>
  call("PUT", `/identities/${uid}/conditions`, { conditions }, bearer);
const setGuard = (guard: object, bearer?: string, group = world.root) =>
  call("PUT", `/groups/${group}/issuerGuard`, { guard }, bearer);
const removeGuard = () => call("DELETE", `/groups/${world.root}/issuerGuard`);
const equals = (path: readonly string[], value: object, negated = false) => ({ path, equals: value, negated });
const text = (stringValue: string) => ({ stringValue });
const token = (claims: object = {}) => world.token({ sub: SUBJECT, ...claims });
const exchange = (identity: string, bearer: string) => world.exchange({ identity }, bearer);
const iam = (method: string, path: string, json: object, bearer = world.owner.token) =>
  ask(world.url, `/iam${path}`, { method, bearer, json });

async function identityRow(uid: string) {
  return world.write((tx) => tx.table(identityKind).find(uid));
}

/** The newest rows of the audit log about a resource, newest first, with their bodies. */
async function readRows(subject: string, count: number) {
  return world.write(async (tx) => {
    const rows = (await tx.audit.listNewest(count)).filter(({ subjectUid }) => subjectUid === subject);
    const bodies = await tx.audit.readBodies(rows);
    return rows.map(({ id, type }) => ({ type, body: JSON.parse(bodies.get(id) ?? "{}") }));
  });
}

async function storeConditions(uid: string, conditions: readonly object[]): Promise<void> {
  const read = conditions.map((one) => fromJson(ConditionSchema, one as JsonObject));
  await world.write((tx) => tx.table(identityKind).update(uid, { conditions: conditionsToJson(read) }, 1_000));
}

describe("conditions", () => {
  it("are stored, shown, replaced and removed", async () => {
    const uid = await world.workload(SUBJECT);
    assert.deepEqual((await call("GET", `/identities/${uid}/conditions`)).json, { identity: uid, conditions: [] });
    const conditions = [equals(["environment"], text("prod")), { path: ["a.b", "c"], exists: true, negated: true }];
    const set = await setConditions(uid, conditions);
    assert.equal(set.status, 200, set.text);
    assert.deepEqual((await call("GET", `/identities/${uid}/conditions`)).json, set.json);
    assert.deepEqual(
      (set.json.conditions as readonly { path: unknown }[]).map(({ path }) => path),
      [["environment"], ["a.b", "c"]],
    );
    assert.equal((await exchange(uid, token())).status, 403);
    assert.equal((await exchange(uid, token({ environment: "prod" }))).status, 200);
    assert.equal((await exchange(uid, token({ environment: "prod", "a.b": { c: 0 } }))).status, 403);
    await setConditions(uid, []);
    assert.equal((await exchange(uid, token())).status, 200);
  });

  it("of an identity are created with it in one call", async () => {
    const identity = { name: "ci", claimMatch: { issuer: world.workloads.issuer, subject: SUBJECT } };
    const conditions = [equals(["environment"], text("prod"))];
    const { status, json, text: said } = await call("POST", `/identities/${world.root}`, { identity, conditions });
    assert.equal(status, 200, said);
    const { uid } = json.identity as { uid: string };
    assert.equal((json.conditions as object[]).length, 1);
    assert.equal((await exchange(uid, token())).status, 403);
    assert.equal((await exchange(uid, token({ environment: "prod" }))).status, 200);
    const invalid = await call("POST", `/identities/${world.root}`, { identity, conditions: [{ path: ["a"] }] });
    assert.equal(invalid.status, 400, invalid.text);
    const aws = { name: "aws", awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "u" } };
    assert.match(
      (await call("POST", `/identities/${world.root}`, { identity: aws, conditions })).text,
      /conditions apply/,
    );
    const found = await ask(world.url, `/iam/v2beta1/identities?name=aws`, { bearer: world.owner.token });
    assert.deepEqual(found.json.identities, [], "nothing is left of it");
  });

  it("have rows in the audit log, and a creation has that of the published API", async () => {
    const identity = { name: "audited", claimMatch: { issuer: world.workloads.issuer, subject: SUBJECT } };
    const conditions = [equals(["environment"], text("prod"))];
    const { json } = await call("POST", `/identities/${world.root}`, { identity, conditions });
    const { uid } = json.identity as { uid: string };
    await setConditions(uid, []);
    await setConditions(uid, []);
    const rows = await readRows(uid, 3);
    assert.deepEqual(rows.map(({ type }) => type).sort(), [
      "dev.arbor.trust.conditions.updated.v1",
      "dev.arbor.trust.conditions.updated.v1",
      "dev.chainguard.api.iam.identity.created.v1",
    ]);
    const created = rows.find(({ type }) => type.endsWith("created.v1"));
    assert.equal(created?.body.type, "chainguard.platform.iam.v2beta1.Identity");
    assert.equal(created?.body.after.name, "audited");
    assert.equal(rows[0]?.body.before.conditions.length, 1, "the newest removes them");
    assert.equal(rows[0]?.body.after.conditions, undefined);
  });

  it("survive what clients of the published API change", async () => {
    const uid = await world.workload(SUBJECT);
    await setConditions(uid, [equals(["environment"], text("prod"))]);
    const claimMatch = { issuer: world.workloads.issuer, subject: "repo:acme/other" };
    const body = { name: "renamed", description: "", claimMatch };
    const masked = await iam("PATCH", `/v2beta1/identities/${uid}?updateMask=*`, body);
    assert.equal(masked.status, 200, masked.text);
    assert.equal((await iam("PUT", `/v1/identities/${uid}`, { ...body, name: "again" })).status, 200);
    assert.equal((await iam("PATCH", `/v2/identities/${uid}`, { name: "third" })).status, 200);
    assert.equal((await identityRow(uid))?.conditions.length, 1);
    assert.equal((await exchange(uid, world.token({ sub: "repo:acme/other" }))).status, 403);
    assert.equal((await exchange(uid, world.token({ sub: "repo:acme/other", environment: "prod" }))).status, 200);
  });

  it("apply to claim matches and static keys alone", async () => {
    const aws = { awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "u" } };
    const { json } = await iam("POST", `/v2beta1/identities/${world.root}`, { name: "aws", ...aws });
    const refused = await setConditions(String(json.uid), [{ path: ["a"], exists: true }]);
    assert.deepEqual([refused.status, /conditions apply to/.test(refused.text)], [400, true]);
    const uid = await world.workload(SUBJECT);
    await setConditions(uid, [equals(["repository_id"], { intValue: "123" })]);
    const changed = await iam("PATCH", `/v2beta1/identities/${uid}?updateMask=*`, { name: "ci", ...aws });
    assert.equal(changed.status, 400);
    assert.match(
      changed.text,
      /FAILED_PRECONDITION.*repository_id equals 123|repository_id equals 123.*FAILED_PRECONDITION/s,
    );
  });

  it("need all rights of the identity, for adding and for removing", async () => {
    const uid = await world.workload(SUBJECT, { role: "owner" });
    const editor = await world.person("updater");
    const { json, text: said } = await iam("POST", `/v2beta1/roles/${world.root}`, {
      name: "updater",
      capabilities: ["UPDATE", "LIST", "CREATE"].map((verb) => `CAP_IAM_IDENTITY_${verb}`),
    });
    assert.ok(json.uid, said);
    await world.harness.bind(editor.uid, "viewer", world.root);
    const bound = await iam("POST", `/v2beta1/roleBindings/${world.root}`, {
      identityUid: editor.uid,
      roleUid: json.uid,
    });
    assert.equal(bound.status, 200, bound.text);
    const some = [equals(["environment"], text("prod"))];
    assert.equal((await setConditions(uid, some, editor.token)).status, 403);
    await setConditions(uid, some);
    assert.equal((await setConditions(uid, [], editor.token)).status, 403);
    assert.equal((await setConditions(uid, some, editor.token)).status, 200, "which changes nothing");
    const plain = await world.workload(SUBJECT);
    assert.equal((await setConditions(plain, some, editor.token)).status, 200);
  });

  it("of another organisation are neither shown nor changed", async () => {
    const uid = await world.workload(SUBJECT);
    const by = world.foreignOwner.token;
    const unknown = randomIds.newUid(world.root);
    for (const one of [uid, unknown]) {
      assert.equal((await call("GET", `/identities/${one}/conditions`, undefined, by)).status, 403);
      assert.equal((await setConditions(one, [], by)).status, 403);
    }
    assert.equal((await setGuard({ issuers: [] }, by)).status, 403);
    assert.equal((await call("GET", `/groups/${world.root}/issuerGuard`, undefined, by)).status, 403);
    assert.equal((await call("POST", `/groups/${world.root}:checkIssuerGuard`, { guard: {} }, by)).status, 403);
  });

  it("of static keys, such as pull tokens", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const issuerKeys = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1" }] });
    const own = { issuer: "https://pull.example", subject: "puller", issuerKeys };
    const uid = await world.assumable({ staticKeys: { ...own, expirationTime: "2099-01-01T00:00:00Z" } });
    await world.write((tx) => tx.table(identityKind).update(uid, { relation: 2 }, 1_000));
    const set = await setConditions(uid, [equals(["host"], text("one"))]);
    assert.equal(set.status, 200, set.text);
    const iat = Math.floor(Date.now() / 1000);
    const sign = (claims: object) =>
      signToken(
        { alg: "ES256", kid: "1" },
        { iss: own.issuer, sub: own.subject, aud: world.url, iat, exp: iat + 600, ...claims },
        privateKey,
      );
    assert.equal((await exchange(uid, sign({ host: "two" }))).status, 403);
    assert.equal((await exchange(uid, sign({ host: "one" }))).status, 200);
  });
});

const DOORS = [
  ...["GET /sts/exchange", "SecurityTokenService.Exchange", "POST /oauth/token", "GET /token", "Auth.Register"],
  ...["TestClaims of a token", "TestClaims of claims"],
] as const;

/** Every door that takes a token of another issuer: whether it accepts it. */
function doors(): Readonly<
  Record<(typeof DOORS)[number], (identity: string, bearer: string, claims: object) => Promise<boolean>>
> {
  const grpc = createGrpcTransport({ baseUrl: world.url });
  const sts = createClient(SecurityTokenService, grpc);
  const access = createClient(AccessService, grpc);
  const tested = async (identity: string, subject: object) => {
    const headers = { authorization: `Bearer ${world.owner.token}` };
    return (await access.testClaims({ identity, subject } as never, { headers })).accepted;
  };
  return {
    "GET /sts/exchange": async (identity, bearer) => (await exchange(identity, bearer)).status === 200,
    "SecurityTokenService.Exchange": (identity, bearer) =>
      sts
        .exchange({ identity, aud: [world.url] }, { headers: { authorization: `Bearer ${bearer}` } })
        .then(() => true)
        .catch(() => false),
    "POST /oauth/token": async (identity, bearer) => {
      const type = "urn:ietf:params:oauth:token-type:jwt";
      const grant = "urn:ietf:params:oauth:grant-type:token-exchange";
      const body = {
        grant_type: grant,
        subject_token: bearer,
        subject_token_type: type,
        audience: world.url,
        identity,
      };
      return (await fetch(`${world.url}/oauth/token`, { method: "POST", body: new URLSearchParams(body) })).ok;
    },
    "GET /token": async (user, password) => (await askToken(world.url, { user, password })).status === 200,
    "Auth.Register": async (identityId, bearer) => {
      const { status, text: said } = await register(world, bearer, { identityId, code });
      assert.ok(status === 200 || /assuming/.test(said), said);
      return status === 200;
    },
    "TestClaims of a token": (identity, bearer) => tested(identity, { case: "token", value: bearer }),
    "TestClaims of claims": (identity, _, claims) => tested(identity, { case: "claims", value: claims }),
  };
}

describe("every door", () => {
  for (const name of DOORS) {
    it(`${name}: checks conditions and the guard of that moment`, async () => {
      const door = doors()[name];
      assert.ok(door);
      const uid = await world.workload(SUBJECT);
      const accepts = (claims: object = {}) => {
        const bearer = token(claims);
        const { iss, sub, aud } = JSON.parse(Buffer.from(bearer.split(".")[1] ?? "", "base64url").toString());
        return door(uid, bearer, { iss, sub, aud, ...claims });
      };
      assert.equal(await accepts(), true, "without conditions");
      await setConditions(uid, [equals(["environment"], text("prod"))]);
      assert.deepEqual([await accepts(), await accepts({ environment: "prod" })], [false, true], "with a condition");
      await setConditions(uid, []);
      const { origin } = new URL(world.workloads.issuer);
      const other = { issuer: "https://elsewhere.example" };
      const conditions = [equals(["environment"], text("prod"))];
      for (const [guard, expected] of [
        [{ issuers: [other] }, [false, false]],
        [{ issuers: [other, { origin }] }, [true, true]],
        [{ issuers: [{ issuer: world.workloads.issuer, conditions }] }, [false, true]],
        [{ issuers: [{ issuer: world.workloads.issuer }, { origin, conditions }] }, [false, true]],
      ] as const) {
        const set = await setGuard(guard);
        assert.equal(set.status, 200, set.text);
        assert.deepEqual([await accepts(), await accepts({ environment: "prod" })], expected, JSON.stringify(guard));
      }
      assert.equal((await removeGuard()).status, 200);
      assert.equal(await accepts(), true, "without a guard again");
    });
  }

  it(`${PAIRS} random conditions: all doors say what the model says`, async () => {
    const random = createRandom(20_261_128);
    const uid = await world.workload(SUBJECT);
    const { issuer } = world.workloads;
    // Failures at a registration are limited, as those with wrong codes of invites are.
    const all = Object.entries(doors()).filter(([name]) => name !== "Auth.Register");
    let held = 0;
    for (let i = 0; i < PAIRS; i++) {
      const one = randomCondition(random);
      const json = JSON.parse(randomObject(random)) as Record<string, unknown>;
      const claims = { iss: issuer, sub: SUBJECT, aud: world.url, ...json };
      const expected = modelHolds(one, JSON.stringify(claims));
      if (expected) held++;
      await world.write((tx) => tx.table(identityKind).update(uid, { conditions: conditionsToJson([one]) }, 1_000));
      const bearer = world.token(claims);
      for (const [name, door] of all) {
        assert.equal(await door(uid, bearer, claims), expected, `${name}: ${JSON.stringify(conditionsToJson([one]))}`);
      }
    }
    assert.ok(held > 0 && held < PAIRS);
  });

  it("answers as for an unknown identity, and the log names the condition without values", async () => {
    const uid = await world.workload(SUBJECT);
    const unknown = randomIds.newUid(world.root);
    const cases: readonly (readonly [object, object, Record<string, string>])[] = [
      [
        equals(["kubernetes.io", "namespace"], text("secret-value")),
        { "kubernetes.io": { namespace: "token-value" } },
        { condition: '"kubernetes.io".namespace equals', wantedType: "string", foundType: "string" },
      ],
      [
        equals(["repository_id"], { intValue: "424242" }),
        { repository_id: "424242" },
        { condition: "repository_id equals", wantedType: "integer", foundType: "string" },
      ],
      [
        { path: ["groups"], contains: text("secret-value") },
        {},
        { condition: "groups contains", wantedType: "array", foundType: "missing" },
      ],
    ];
    for (const [condition, claims, expected] of cases) {
      await storeConditions(uid, [{ path: ["iss"], exists: true }, condition]);
      const bearer = token(claims);
      const [known, none] = [await exchange(uid, bearer), await exchange(unknown, bearer)];
      assert.equal(known.status, 403);
      assert.equal(known.text.replaceAll(uid, unknown), none.text);
      const line = await findLine(uid);
      const { reason, condition: named, wantedType, foundType } = line;
      assert.deepEqual({ reason, condition: named, wantedType, foundType }, { reason: "match_condition", ...expected });
      assert.doesNotMatch(JSON.stringify(line), /secret-value|token-value|424242/);
    }
  });

  it("TestClaims says what a condition accepts and what the token has", async () => {
    const uid = await world.workload(SUBJECT);
    await setConditions(uid, [equals(["repository_id"], { intValue: "123" })]);
    const test = (claims: object) =>
      ask(world.url, `/access/v1/identities/${uid}:testClaims`, {
        ...{ method: "POST", bearer: world.owner.token },
        json: { claims: { iss: world.workloads.issuer, sub: SUBJECT, aud: world.url, ...claims } },
      });
    const { json } = await test({ repository_id: "123" });
    assert.deepEqual(json, {
      ...{ accepted: false, failed: "CONDITION_ON_CLAIMS", claim: "repository_id", actual: "123" },
      expected: "repository_id equals 123",
      message:
        "A condition of the identity: the claim repository_id is of the type string, and must be of the type integer.",
    });
    assert.equal((await test({ repository_id: 123 })).json.accepted, true);
    assert.match(String((await test({})).json.message), /repository_id is missing/);
    assert.match(String((await test({ repository_id: 4 })).json.message), /is not what it accepts/);
    const large = await test({ padding: "x".repeat(65_536) });
    assert.deepEqual([large.status, /at most 64 KiB/.test(large.text)], [400, true]);
  });
});

async function findLine(identity: string): Promise<Record<string, unknown>> {
  for (let i = 0; ; i++) {
    const found = lines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line.msg === "request" && line.identity === identity);
    const last = found.at(-1);
    if (last !== undefined) {
      lines.length = 0;
      return last;
    }
    assert.ok(i < 1_000, "no line was written");
    await sleep(10);
  }
}

describe("an issuer guard", () => {
  it("allows whole strings and whole origins, not what begins like them", async () => {
    const guard = { issuers: [{ origin: "https://gitlab.example.com" }, { issuer: "https://token.example/a" }] };
    assert.equal((await setGuard(guard)).status, 200);
    const create = async (claimMatch: object) => {
      const { status, text: said } = await iam("POST", `/v2beta1/identities/${world.root}`, {
        name: "guarded",
        claimMatch: { subject: "s", ...claimMatch },
      });
      assert.ok(status === 200 || /issuer guard/.test(said), said);
      return status;
    };
    for (const issuer of [
      "https://gitlab.example.com",
      "https://gitlab.example.com/group",
      "https://token.example/a",
    ]) {
      assert.equal(await create({ issuer }), 200, issuer);
    }
    for (const issuer of [
      ...["https://gitlab.example.com.evil.example", "https://gitlab.example.com:8443", "https://gitlab.example.co"],
      ...["https://token.example/ab", "https://token.example", "https://token.example/a/b", "http://127.0.0.1:1"],
    ]) {
      assert.equal(await create({ issuer }), 400, issuer);
    }
    assert.equal(await create({ issuerPattern: "https://gitlab\\.example\\.com/.*" }), 400);
    await removeGuard();
  });

  it("has static keys, AWS and service principals as entries of their own", async () => {
    const kinds = {
      staticKeys: { staticKeys: { issuer: "https://pull.example", subject: "s", issuerKeys: "{}" } },
      aws: { awsIdentity: { awsAccount: "123456789012", arn: "a", userId: "u" } },
      servicePrincipals: { servicePrincipal: "SERVICE_PRINCIPAL_COSIGNED" },
    };
    for (const [kind, relationship] of Object.entries(kinds)) {
      const create = async () =>
        (await iam("POST", `/v2beta1/identities/${world.root}`, { name: "kind", ...relationship })).status;
      const set = await setGuard({ issuers: [] });
      assert.deepEqual([set.json.staticKeys, set.json.aws, set.json.servicePrincipals], [true, true, true]);
      assert.equal(await create(), 200, `${kind} is allowed unless it is left out`);
      await setGuard({ issuers: [], [kind]: false });
      assert.equal(await create(), 400, kind);
    }
    await removeGuard();
  });

  it("judges stored patterns by the issuer of the token, before keys are fetched", async () => {
    const { issuer } = stranger;
    const pattern = `${issuer.replaceAll(".", "\\.")}.*`;
    const uid = await world.assumable({ claimMatch: { issuerPattern: pattern, subject: SUBJECT } });
    await setGuard({ issuers: [{ issuer: "https://elsewhere.example" }] });
    const { requests } = stranger;
    const before = requests.discovery + requests.keys;
    assert.equal((await exchange(uid, stranger.token({ sub: SUBJECT, aud: world.url }))).status, 403);
    assert.equal((await findLine(uid)).reason, "match_guard");
    assert.equal(requests.discovery + requests.keys, before);
    await removeGuard();
  });

  it("lists what it would shut out", async () => {
    const group = await world.harness.organisation("guarded");
    const make = (relationship: object) => world.assumable(relationship, { group: group.group });
    const shut = [
      await make({ claimMatch: { issuer: "https://elsewhere.example", subject: "s" } }),
      await make({ claimMatch: { issuerPattern: "https://a\\.example/.*", subject: "s" } }),
      await make({ staticKeys: { issuer: "https://pull.example", subject: "s", issuerKeys: "{}" } }),
    ];
    for (let i = 0; i < 5; i++) await make({ claimMatch: { issuer: "https://a.example", subject: "s" } });
    const guard = { issuers: [{ issuer: "https://a.example" }], staticKeys: false };
    const found: Record<string, unknown>[] = [];
    let pageToken = "";
    do {
      const path = `/groups/${group.group}:checkIssuerGuard`;
      const { status, json, text: said } = await call("POST", path, { guard, pageSize: 2, pageToken }, group.token);
      assert.equal(status, 200, said);
      found.push(...(json.identities as Record<string, unknown>[]));
      pageToken = String(json.nextPageToken ?? "");
    } while (pageToken !== "");
    assert.deepEqual(
      new Map(found.map(({ uid, reason, issuer }) => [uid, `${reason} ${issuer}`])),
      new Map(
        [
          [shut[0], "REASON_ISSUER https://elsewhere.example"],
          [shut[1], "REASON_ISSUER_PATTERN https://a\\.example/.*"],
          [shut[2], "REASON_RELATIONSHIP https://pull.example"],
        ].sort() as [string, string][],
      ),
    );
    const stored = await world.write((tx) => tx.table(groupKind).find(group.group));
    assert.deepEqual(stored?.issuerGuard, {}, "nothing is set");
  });

  it("is that of a root group, by an owner, and keeps what clients of the published API do not see", async () => {
    const { json } = await iam("POST", `/v2beta1/groups/${world.root}`, { name: "below" });
    assert.equal((await setGuard({}, undefined, String(json.uid))).status, 400);
    const other = await world.person("not-an-owner");
    const role = await iam("POST", `/v2beta1/roles/${world.root}`, {
      name: "providers",
      capabilities: ["UPDATE", "LIST"].map((verb) => `CAP_IAM_IDENTITY_PROVIDERS_${verb}`),
    });
    await iam("POST", `/v2beta1/roleBindings/${world.root}`, { identityUid: other.uid, roleUid: role.json.uid });
    assert.equal((await setGuard({}, other.token)).status, 403);
    await setGuard({ issuers: [{ issuer: "https://a.example" }] });
    assert.equal((await iam("PATCH", `/v2beta1/groups/${world.root}?updateMask=*`, { name: "ours" })).status, 200);
    const { json: kept } = await call("GET", `/groups/${world.root}/issuerGuard`);
    assert.equal((kept.guard as { issuers: object[] }).issuers.length, 1);
    for (let i = 0; i < 2; i++) assert.equal((await removeGuard()).status, 200);
    assert.deepEqual((await call("GET", `/groups/${world.root}/issuerGuard`)).json, {});
    const [removed] = await readRows(world.root, 1);
    assert.equal(removed?.type, "dev.arbor.trust.guard.updated.v1");
    assert.equal(removed?.body.before?.issuers[0].issuer, "https://a.example");
    assert.equal(removed?.body.after, undefined);
  });

  const faults: readonly (readonly [name: string, issuers: readonly object[]])[] = [
    ["an entry without an issuer", [{}]],
    ["an origin with a path", [{ origin: "https://a.example/b" }]],
    ["an origin with a slash", [{ origin: "https://a.example/" }]],
    ["an issuer with a query", [{ issuer: "https://a.example?b" }]],
    ["an issuer twice", [{ issuer: "https://a.example" }, { issuer: "https://a.example" }]],
    ["an invalid condition", [{ issuer: "https://a.example", conditions: [{ path: [], exists: true }] }]],
    ["51 entries", Array.from({ length: 51 }, (_, i) => ({ issuer: `https://a${i}.example` }))],
  ];
  for (const [name, issuers] of faults) {
    it(`with ${name} is refused`, async () => {
      const { status, text: said } = await setGuard({ issuers });
      assert.equal(status, 400, said);
    });
  }
});

describe("while servers of the version before may use the database", () => {
  const setOldest = (version: string) => world.write((tx) => tx.settings.put(OLDEST_VERSION, version));

  it("neither conditions nor a guard can be set, and both can be removed", async () => {
    const uid = await world.workload(SUBJECT);
    await setConditions(uid, [{ path: ["a"], exists: true }]);
    await setGuard({ issuers: [] });
    const oldest = (await world.write((tx) => tx.settings.find(OLDEST_VERSION))) ?? "";
    await setOldest("1.7.0");
    try {
      const identity = { name: "ci", claimMatch: { issuer: "https://a.example", subject: "s" } };
      const conditions = [{ path: ["b"], exists: true }];
      for (const refused of [
        await setConditions(uid, conditions),
        await setGuard({ issuers: [{ issuer: "https://a.example" }] }),
      ]) {
        assert.equal(refused.status, 400);
        assert.match(refused.text, /DATABASE_NOT_CONTRACTED/);
        assert.match(refused.text, /arbor migrate --contract/);
      }
      assert.equal((await removeGuard()).status, 200);
      const created = await call("POST", `/identities/${world.root}`, { identity, conditions });
      assert.match(created.text, /arbor migrate --contract/);
      assert.equal((await call("POST", `/identities/${world.root}`, { identity })).status, 200, "without conditions");
      assert.equal((await setConditions(uid, [])).status, 200);
    } finally {
      await setOldest(oldest);
    }
    assert.equal((await setConditions(uid, [{ path: ["a"], exists: true }])).status, 200);
  });
});

it("queries name no conditions: the exchange takes what it took before", async () => {
  const uid = await world.workload(SUBJECT);
  const { status } = await ask(world.url, `/sts/exchange?${queryOf({ aud: world.url, identity: uid })}`, {
    bearer: token(),
  });
  assert.equal(status, 200);
});
