// Refresh tokens: each is good once, the second use of one ends the login unless a client repeats what it has just sent,
// and no login outlives its thirty days, its identity or its limits.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { revokeTokens } from "../../src/iam/operator/operate.js";
import { buildCapabilitySet, listCapabilityNames } from "../../src/iam/roles/capability-names.js";
import { createTokens, type TokenGrant } from "../../src/issuer/tokens.js";
import { randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { invalid, unauthenticated } from "../contract/expectations.js";
import { rawClients, requestOf } from "../contract/iam-clients.js";
import { groupRow } from "../support/rows.js";
import { sendHttp } from "../support/send-http.js";
import { type Answer, ask, queryOf } from "./sts/ask.js";
import { claimsOf, dumpOf, type ExchangeWorld, type Parameters, startExchangeWorld } from "./sts/exchange-world.js";

const DAY_MS = 24 * 3_600_000;

let world: ExchangeWorld;
let child: string;
before(async () => {
  world = await startExchangeWorld();
  child = randomIds.newUid(world.root);
  await world.write((tx) => tx.table(groupKind).insert(groupRow(child)));
});
after(() => world.stop());

const nowMs = () => Date.now() + world.harness.skewMs;

/** The first refresh token of a login, as logins in a browser give it. */
function login(identity: string, limit?: TokenGrant["limit"]): Promise<string> {
  const { keys } = world.harness.app.installation;
  const tokens = createTokens({ keys, ids: randomIds, issuer: world.url });
  return world.write((tx) => tokens.createRefreshToken(tx, identity, { audience: world.url, limit }, nowMs()));
}

const refresh = (bearer: string, parameters: Parameters = {}): Promise<Answer> =>
  ask(world.url, `/sts/exchange_refresh_token?${queryOf(parameters)}`, { method: "POST", bearer });

interface Pair {
  readonly token: { readonly token: string; readonly expiry: string };
  readonly refreshToken: { readonly token: string; readonly expiry: string };
}

async function refreshPair(bearer: string, parameters: Parameters = {}): Promise<Pair> {
  const { status, json, text } = await refresh(bearer, parameters);
  assert.equal(status, 200, text);
  return json as unknown as Pair;
}

const isDead = async (bearer: string) => {
  const { outcome, headers } = await refresh(bearer);
  assert.deepEqual(outcome, unauthenticated());
  assert.equal(headers.get("cache-control"), "no-store");
};
const newPerson = async () => (await world.person(`person ${randomIds.newId()}`)).uid;

async function later<T>(skewMs: number, work: () => Promise<T>): Promise<T> {
  world.harness.skewMs = skewMs;
  try {
    return await work();
  } finally {
    world.harness.skewMs = 0;
  }
}

// The errors of OAuth have a form of their own.
async function revoke(parameters: Parameters, query = "") {
  const response = await sendHttp(`${world.url}/oauth/revoke${query}`, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: queryOf(parameters),
  });
  return { ...response, json: JSON.parse(response.text) as { readonly error?: string } };
}

describe("a login", () => {
  it("is ended by its newest refresh token, and by any before", async () => {
    const uid = await newPerson();
    for (const isNewest of [true, false]) {
      const first = await login(uid);
      const other = await login(uid);
      const { refreshToken } = await refreshPair(first);
      const { status, json, headers } = await revoke({ token: isNewest ? refreshToken.token : first });
      assert.deepEqual([status, json, headers.get("cache-control")], [200, {}, "no-store"]);
      await isDead(refreshToken.token);
      await isDead(first);
      // Other logins of the person go on.
      await refreshPair(other);
    }
  });

  it("cannot be told from none by the response", async () => {
    const uid = await newPerson();
    const known = await revoke({ token: await login(uid), token_type_hint: "refresh_token", client_id: "anybody" });
    for (const token of ["x", await login(uid).then((one) => one.slice(4)), "A".repeat(600)]) {
      const { status, text } = await revoke({ token });
      assert.deepEqual([status, text], [known.status, known.text]);
    }
  });

  it("is not ended by an API token, by a request without a token, or by one in the query", async () => {
    const uid = await newPerson();
    const { token, refreshToken } = await refreshPair(await login(uid));
    const unsupported = await revoke({ token: token.token });
    assert.deepEqual([unsupported.status, unsupported.json.error], [400, "unsupported_token_type"]);
    assert.equal((await revoke({})).status, 400);
    assert.equal((await revoke({ a: "b" }, `?${queryOf({ token: refreshToken.token })}`)).status, 400);
    await refreshPair(refreshToken.token);
  });
});

describe("a refresh token", () => {
  it("is base64 of JSON with its expiry, and changed for a token and the next", async () => {
    const uid = await newPerson();
    const first = await login(uid);
    const { exp } = JSON.parse(Buffer.from(first, "base64").toString()) as { exp: number };
    assert.ok(Math.abs(exp * 1000 - Date.now() - 30 * DAY_MS) < 5_000, `ends at ${exp}`);
    const response = await refresh(first);
    for (const [name, value] of [
      ["cache-control", "no-store"],
      ["pragma", "no-cache"],
      ["vary", "authorization"],
    ] as const) {
      assert.equal(response.headers.get(name), value);
    }
    const { token, refreshToken } = response.json as unknown as Pair;
    const {
      sub,
      aud,
      iat,
      exp: end,
      lim,
    } = claimsOf(token.token) as Record<string, unknown> & { iat: number; exp: number };
    assert.deepEqual([sub, aud, end - iat, lim], [uid, world.url, 3600, undefined]);
    assert.equal(Date.parse(token.expiry), end * 1000);
    assert.equal(Math.floor(Date.parse(refreshToken.expiry) / 1000), exp, "the login ends when it did");
    assert.notEqual(refreshToken.token, first);
    assert.equal((await ask(world.url, "/auth/v1/ok", { bearer: token.token })).status, 200);
    await refreshPair(refreshToken.token);
  });

  it("may bring its parameters in a query or a form, over every protocol", async () => {
    const uid = await newPerson();
    let current = await login(uid);
    const parameters = queryOf({ aud: world.url, cap: "groups.list", scope: world.root, cluster: "x" });
    for (const request of [{ form: parameters }, { headers: { "content-length": "0" } }]) {
      const path = `/sts/exchange_refresh_token${request.form === undefined ? `?${parameters}` : ""}`;
      const { status, json, text } = await ask(world.url, path, { method: "POST", bearer: current, ...request });
      assert.equal(status, 200, text);
      const { token, refreshToken } = json as unknown as Pair;
      const limit = claimsOf(token.token).lim as { cap: string; scope: string[] };
      assert.deepEqual([listCapabilityNames(limit.cap), limit.scope], [["groups.list"], [world.root]]);
      current = refreshToken.token;
    }
    const { exchangeRefreshToken: method } = SecurityTokenService.method;
    for (const client of rawClients(world.url)) {
      const own = await login(uid);
      for (const code of ["OK", "OK", "UNAUTHENTICATED"]) {
        assert.equal((await client.call(method, requestOf(method, {}), own)).code, code, client.name);
      }
      client.close();
    }
  });

  it("is in the database as a hash alone", async () => {
    const first = await login(await newPerson());
    const { refreshToken } = await refreshPair(first);
    const files = readdirSync(world.data).map((name) => readFileSync(join(world.data, name)));
    for (const token of [first, refreshToken.token]) {
      const { sec } = JSON.parse(Buffer.from(token, "base64").toString()) as { sec: string };
      assert.ok(Buffer.from(sec, "base64url").length >= 32, "256 bits");
      for (const bytes of files) assert.ok(!bytes.includes(sec) && !bytes.includes(token), "a file holds it");
    }
    assert.ok(
      files.some((bytes) => bytes.includes(world.url)),
      "the files that hold the rest",
    );
  });
});

describe("the second use of one", () => {
  it("ends the login, and stays ended", async () => {
    const uid = await newPerson();
    const [first, other] = [await login(uid), await login(uid)];
    const second = (await refreshPair(first)).refreshToken.token;
    const third = (await refreshPair(second)).refreshToken.token;
    await isDead(first);
    for (const token of [third, second, first]) await isDead(token);
    await refreshPair(other);
    const { store } = world.harness.app.installation;
    const [row] = await store.read((tx) => tx.audit.listNewest(10, uid));
    assert.equal(row?.subjectUid, uid, "and the log tells whose it was");
  });

  it("ends it over every protocol", async () => {
    const { exchangeRefreshToken: method } = SecurityTokenService.method;
    for (const client of rawClients(world.url)) {
      const first = await login(await newPerson());
      const second = (await refreshPair(first)).refreshToken.token;
      const third = (await refreshPair(second)).refreshToken.token;
      assert.equal((await client.call(method, requestOf(method, {}), first)).code, "UNAUTHENTICATED", client.name);
      await isDead(third);
      client.close();
    }
  });

  it("at the same time as the first lets one repeat through, and more end the login", async () => {
    // It is unknown which of them is the thief, so the tokens of the faster ones are revoked too.
    for (let round = 0; round < 5; round++) {
      const first = await login(await newPerson());
      const responses = await Promise.all(Array.from({ length: 4 }, () => refresh(first)));
      assert.deepEqual(responses.map(({ status }) => status).sort(), [200, 200, 401, 401]);
      for (const { status, json } of responses) {
        if (status === 200) await isDead((json as unknown as Pair).refreshToken.token);
      }
    }
  });
});

describe("a repeat of one within ten seconds", () => {
  const next = async (bearer: string) => (await refreshPair(bearer)).refreshToken.token;

  it("gets a sibling of the token that was lost, once", async () => {
    const first = await login(await newPerson());
    const lost = await next(first);
    const { token, refreshToken } = await refreshPair(first);
    assert.equal((await ask(world.url, "/auth/v1/ok", { bearer: token.token })).status, 200);
    assert.notEqual(refreshToken.token, lost);
    const later = await next(refreshToken.token);
    assert.ok(await next(later), "the login goes on");
    await isDead(first);
    await isDead(later);
  });

  it("uses up the other sibling with the first use of one, whichever it is", async () => {
    for (const useFirst of [true, false]) {
      const first = await login(await newPerson());
      const siblings = [await next(first), await next(first)] as const;
      const [used, stolen] = useFirst ? siblings : [siblings[1], siblings[0]];
      const after = await next(used);
      await isDead(stolen);
      await isDead(after);
    }
  });

  it("ends the login once the successor was used, though not ten seconds ago", async () => {
    const first = await login(await newPerson());
    const third = await next(await next(first));
    await isDead(first);
    await isDead(third);
  });

  it("ends the login after ten seconds, and not a moment before", async () => {
    const [late, early] = [await login(await newPerson()), await login(await newPerson())];
    const [lateNext] = [await next(late), await next(early)];
    await later(9_000, () => next(early));
    await later(10_001, async () => {
      await isDead(late);
      await isDead(lateNext);
    });
  });

  it("ends the login where another client sends it", async () => {
    const first = await login(await newPerson());
    const second = await next(first);
    const query = queryOf({ aud: world.url });
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const url = `${world.url}/sts/exchange_refresh_token?${query}`;
      const headers = { authorization: `Bearer ${first}`, "content-length": "0" };
      const sent = request(url, { method: "POST", localAddress: "127.0.5.1", headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on("error", reject).end();
    });
    assert.equal(status, 401);
    await isDead(second);
  });

  it("ends with the login", async () => {
    const uid = await newPerson();
    const first = await login(uid);
    await next(first);
    await world.write((tx) => revokeTokens(tx, uid, { ids: randomIds, nowMs: nowMs() }));
    await isDead(first);
  });
});

describe("a login", () => {
  it("ends 30 days after it began, however often it was renewed", async () => {
    let current = await login(await newPerson());
    for (const day of [7, 14, 21, 28, 29.99]) {
      current = await later(day * DAY_MS, async () => (await refreshPair(current)).refreshToken.token);
    }
    await later(30 * DAY_MS + 1_000, () => isDead(current));
  });

  it("ends in the millisecond of its end, and a revocation spares logins of its second", async () => {
    const uid = await newPerson();
    const { keys } = world.harness.app.installation;
    const tokens = createTokens({ keys, ids: randomIds, issuer: world.url });
    const startMs = Math.floor(nowMs() / 1000) * 1000;
    const isAlive = (loginMs: number, atMs: number) =>
      world.write(async (tx) => {
        const token = await tokens.createRefreshToken(tx, uid, { audience: world.url }, loginMs);
        return (await tokens.rotate(tx, token, {}, { client: "", nowMs: atMs })) !== undefined;
      });
    assert.equal(await isAlive(startMs, startMs + 30 * DAY_MS - 1), true);
    assert.equal(await isAlive(startMs, startMs + 30 * DAY_MS), false);
    await world.write((tx) => tx.table(identityKind).update(uid, { notBefore: startMs / 1000 }, 1));
    assert.equal(await isAlive(startMs - 1, startMs), false);
    assert.equal(await isAlive(startMs, startMs), true);
  });

  it("ends when its tokens are revoked", async () => {
    const uid = await newPerson();
    const first = await login(uid);
    const context = { ids: randomIds, nowMs: Date.now() };
    await world.write((tx) => revokeTokens(tx, uid, context));
    await isDead(first);
  });

  it("ends where the identity counts only what is newer", async () => {
    const uid = await newPerson();
    const [first, kept] = [await login(uid), await login(uid)];
    const next = (await refreshPair(first)).refreshToken.token;
    const second = Math.floor(Date.now() / 1000);
    await world.write((tx) => tx.table(identityKind).update(uid, { notBefore: second - 1 }, 1));
    await refreshPair(kept);
    await world.write((tx) => tx.table(identityKind).update(uid, { notBefore: second + 2 }, 1));
    await isDead(next);
    await later(5_000, async () => {
      await isDead(next);
      await refreshPair(await login(uid));
    });
  });

  it("ends with its identity", async () => {
    const identity = await world.workload("to delete");
    const [first, person] = [await login(identity), await world.person("leaving")];
    const theirs = await login(person.uid);
    const path = `/iam/v2beta1/identities/${identity}`;
    await ask(world.url, path, { method: "DELETE", bearer: world.owner.token });
    await ask(world.url, `/auth/v1/delete/${person.uid}`, { method: "DELETE", bearer: person.token });
    await isDead(first);
    await isDead(theirs);
    await world.person("leaving");
    await isDead(theirs);
  });
});

describe("wrong refresh tokens", () => {
  it("slow down their address, where those that were issued never wait", async () => {
    const wrong = Buffer.from(JSON.stringify({ exp: 4e9, sec: "w".repeat(43) })).toString("base64");
    const first = await login(await newPerson());
    // As many as it takes: on a machine that is busy the window may end before it is full.
    let isFull = false;
    let current = first;
    for (let round = 0; round < 10 && !isFull; round++) {
      await Promise.all(Array.from({ length: 100 }, () => refresh(wrong)));
      const flood = Promise.all(Array.from({ length: 60 }, () => refresh(wrong)));
      for (let i = 0; i < 5; i++) current = (await refreshPair(current)).refreshToken.token;
      isFull = (await flood).some(({ status }) => status === 429);
    }
    assert.ok(isFull, "the control: the queue of the others was full");
  });
});

describe("what is no refresh token", () => {
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
  const cases: readonly [name: string, make: () => string | Promise<string>][] = [
    ["nonsense", () => "nonsense"],
    ["nothing of JSON", () => Buffer.from("{").toString("base64")],
    ["null", () => base64(null)],
    ["a secret that was never given", () => base64({ exp: 4e9, sec: "a".repeat(43) })],
    ["a secret that is no text", () => base64({ exp: 4e9, sec: { $ne: "" } })],
    ["no secret", () => base64({ exp: 4e9 })],
    ["an API token", () => world.owner.token],
    ["a token of another issuer", () => world.idToken({ sub: "x" })],
    ["one of 600 characters", () => base64({ sec: "a".repeat(450) })],
    ["the hash of one", async () => base64({ exp: 4e9, sec: await newestHash() })],
  ];
  const newestHash = async () => {
    const first = await login(await newPerson());
    const { sec } = JSON.parse(Buffer.from(first, "base64").toString()) as { sec: string };
    const { createHash } = await import("node:crypto");
    return createHash("sha256").update(sec).digest("hex");
  };
  for (const [name, make] of cases) {
    it(`${name} is rejected and changes nothing, also not the audit log`, async () => {
      const bearer = await make();
      const { store } = world.harness.app.installation;
      const before = { stored: dumpOf(world.data), log: await store.read((tx) => tx.audit.listNewest(1)) };
      await isDead(bearer);
      const after = { stored: dumpOf(world.data), log: await store.read((tx) => tx.audit.listNewest(1)) };
      assert.deepEqual(after, before);
    });
  }
});

describe("what a login is valid for", () => {
  const limitOf = (pair: Pair) => {
    const limit = claimsOf(pair.token.token).lim as { cap?: string; scope?: string[] } | undefined;
    return { cap: limit?.cap && listCapabilityNames(limit.cap).sort(), scope: limit?.scope };
  };
  const cap = (...names: string[]) => buildCapabilitySet(names);

  it("can be made less", async () => {
    const uid = await newPerson();
    const open = await refreshPair(await login(uid), { cap: "groups.list", scopes: [world.root] });
    assert.deepEqual(limitOf(open), { cap: ["groups.list"], scope: [world.root] });
    assert.deepEqual(
      limitOf(await refreshPair(open.refreshToken.token)),
      { cap: undefined, scope: undefined },
      "for one token",
    );
    const limited = await login(uid, { cap: cap("groups.list", "roles.list"), scope: [world.root, child] });
    const less = await refreshPair(limited, { cap: ["groups.list", "groups.create"], scope: child });
    assert.deepEqual(limitOf(less), { cap: ["groups.list"], scope: [child] });
    const all = await refreshPair(less.refreshToken.token);
    assert.deepEqual(limitOf(all), { cap: ["groups.list", "roles.list"], scope: [world.root, child] });
    const none = await refreshPair(all.refreshToken.token, { cap: "groups.create" });
    assert.deepEqual(limitOf(none), { cap: [], scope: [world.root, child] });
  });

  const scopes = "scopes must be among the groups that the login is good for";
  const aud = "aud must name audiences of this service";
  const wider: readonly [name: string, parameters: () => Parameters, broken: readonly [string, string]][] = [
    ["a group beside", () => ({ scope: world.foreign }), ["scopes", scopes]],
    ["a group above", () => ({ scope: world.root }), ["scopes", scopes]],
    ["one of them and one beside", () => ({ scopes: [child, world.root] }), ["scopes", scopes]],
    // What is granted there does not count for a login that is limited to the group above it.
    ["a group below", () => ({ scope: `${child}/0123456789abcdef` }), ["scopes", scopes]],
    ["another service", () => ({ aud: "https://elsewhere.example" }), ["aud", aud]],
    ["two services", () => ({ aud: [world.url, "https://elsewhere.example"] }), ["aud", aud]],
    ["no capability", () => ({ cap: "fly" }), ["cap", "cap must name capabilities that exist, such as groups.list"]],
  ];
  for (const [name, parameters, broken] of wider) {
    it(`cannot become ${name}, and asking does not end it`, async () => {
      const first = await login(await newPerson(), { scope: [child] });
      assert.deepEqual((await refresh(first, parameters())).outcome, invalid(broken));
      assert.deepEqual(limitOf(await refreshPair(first)), { cap: undefined, scope: [child] });
    });
  }

  it("can become an organisation by name for those who hold a role in it, and for others none", async () => {
    const [ours, theirs] = [await world.harness.organisation("named"), await world.harness.organisation("hidden")];
    const below = randomIds.newUid(ours.group);
    await world.write(async (tx) => {
      for (const { group } of [ours, theirs]) await tx.table(groupKind).update(group, { verified: true }, nowMs());
      await tx.table(groupKind).insert(groupRow(below));
    });
    const uid = await newPerson();
    await world.harness.bind(uid, "viewer", below);
    const first = await login(uid);
    const rule = "scopes must be at most 32 uids of groups or names of verified organisations";
    // A login that is limited to a group learns nothing about what its person holds elsewhere.
    const elsewhere = await login(uid, { scope: [world.root] });
    for (const [token, scope] of [
      [first, "unknown"],
      [first, "hidden"],
      [elsewhere, "unknown"],
      [elsewhere, "named"],
    ] as const) {
      assert.deepEqual((await refresh(token, { scope })).outcome, invalid(["scopes", rule]), scope);
    }
    assert.deepEqual(limitOf(await refreshPair(elsewhere)).scope, [world.root]);
    assert.deepEqual(limitOf(await refreshPair(first, { scope: "named" })).scope, [ours.group]);
    const same = await login(uid, { scope: [ours.group] });
    assert.deepEqual(limitOf(await refreshPair(same, { scope: "named" })).scope, [ours.group]);
  });

  it("can become several names of the service, and is what it was after that", async () => {
    const both = [world.url, world.url.replace("127.0.0.1", "localhost")];
    const first = await login(await newPerson());
    const wide = await refreshPair(first, { aud: both.join() });
    assert.deepEqual(claimsOf(wide.token.token).aud, both);
    assert.equal((await ask(world.url, "/auth/v1/ok", { bearer: wide.token.token })).status, 200);
    const plain = await refreshPair(wide.refreshToken.token);
    assert.equal(claimsOf(plain.token.token).aud, world.url);
  });

  it("stays what it was for grants below it", async () => {
    const uid = await newPerson();
    const below = randomIds.newUid(child);
    await world.write((tx) => tx.table(groupKind).insert(groupRow(below)));
    await world.harness.bind(uid, "viewer", child);
    await world.harness.bind(uid, "owner", below);
    const pair = await refreshPair(await login(uid, { scope: [child] }));
    const create = { method: "POST", json: { name: "made" }, bearer: pair.token.token };
    assert.equal((await ask(world.url, `/iam/v2beta1/groups/${below}`, { bearer: pair.token.token })).status, 200);
    assert.equal((await ask(world.url, `/iam/v2beta1/groups/${below}`, create)).status, 403);
    assert.equal((await refresh(pair.refreshToken.token, { scope: below })).status, 400);
  });
});

it("limits a renewed token to an organisation by its name, where that is verified", async () => {
  const scopeNamed = async (name: string) => {
    const uid = await newPerson();
    await world.harness.bind(uid, "viewer", child);
    const { outcome, json } = await refresh(await login(uid), { scopes: [name] });
    const token = (json as Partial<Pair>).token?.token;
    return token === undefined ? outcome : claimsOf(token).lim;
  };
  const rule = "scopes must be at most 32 uids of groups or names of verified organisations";
  await world.write((tx) => tx.table(groupKind).update(world.root, { name: "renewed.example" }, nowMs()));
  assert.deepEqual(await scopeNamed("renewed.example"), invalid(["scopes", rule]));
  await world.write((tx) => tx.table(groupKind).update(world.root, { verified: true }, nowMs()));
  assert.deepEqual(await scopeNamed("renewed.example"), { scope: [world.root] });
});
