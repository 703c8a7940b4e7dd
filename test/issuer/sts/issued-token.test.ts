// What the tokens of exchanges say (docs/security.md, "Tokens"), read by a
// decoder that shares nothing with the service.
import assert from "node:assert/strict";
import { createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { roleKind } from "../../../src/store/iam/roles.js";
import { bindingRow, groupRow } from "../../support/rows.js";
import { ask } from "./ask.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";

let world: ExchangeWorld;
let child: string;

before(async () => {
  world = await startExchangeWorld();
  child = await newGroup(world.root);
});
after(() => world.stop());

async function newGroup(parent: string): Promise<string> {
  const uid = randomIds.newUid(parent);
  await world.write((tx) => tx.table(groupKind).insert(groupRow(uid)));
  return uid;
}

/** Bit by name of every capability, from the text of the proto. */
const bits = new Map(
  [
    ...readFileSync("proto/chainguard/capabilities/capabilities.proto", "utf8").matchAll(/CAP_\w+ = \d+ \[([^\]]*)\]/g),
  ].map(([, options = ""]) => {
    const name = /name\) = "([^"]+)"/.exec(options)?.[1] ?? "";
    return [name, Number(/bit\) = (\d+)/.exec(options)?.[1])] as const;
  }),
);
const names = new Map([...bits].map(([name, bit]) => [bit, name]));

/** The names in a set: eight bytes that say how many bits, then words of 64 bits, the highest first. */
function decodeNames(text: unknown): string[] {
  assert.match(String(text), /^[A-Za-z0-9_-]+$/);
  const bytes = Buffer.from(String(text), "base64url");
  const length = Number(bytes.readBigUInt64BE(0));
  assert.equal(bytes.length, 8 + 8 * Math.ceil(length / 64));
  const found: number[] = [];
  for (let bit = 0; bit < (bytes.length - 8) * 8; bit++) {
    const word = bytes.readBigUInt64BE(8 + 8 * Math.floor(bit / 64));
    if ((word >> BigInt(bit % 64)) & 1n) found.push(bit);
  }
  assert.equal(Math.max(-1, ...found) + 1, length, "the length ends with the highest bit");
  return found.map((bit) => names.get(bit) ?? `bit ${bit}`).sort();
}

async function capabilitiesOf(role: string): Promise<string[]> {
  const row = await world.harness.app.installation.store.read((tx) => tx.table(roleKind).find(builtinRoleUid(role)));
  const digits = row?.capabilities ?? "";
  const capabilities = [...bits].filter(([, bit]) => (Number.parseInt(digits[bit >> 2] ?? "0", 16) >> (bit & 3)) & 1);
  return capabilities.map(([name]) => name).sort();
}

const union = (...lists: readonly string[][]) => [...new Set(lists.flat())].sort();

describe("a token", () => {
  it("names issuer, identity, audience and an hour, is signed with a published key, and copies nothing", async () => {
    const identity = await world.workload("plain");
    const noise = {
      email: "a@b.example",
      name: "n",
      groups: ["g"],
      lim: {},
      map: [world.root],
      cap: {},
      jti: "mine",
      nbf: 1,
    };
    const atMs = Date.now();
    const token = await world.exchangeToken({ identity }, world.token({ sub: "plain", ...noise }));
    const { iat, exp, jti, ...rest } = claimsOf(token) as Record<string, unknown> & { iat: number; exp: number };
    const act = { iss: world.workloads.issuer, sub: "plain", aud: world.url };
    assert.deepEqual(rest, { iss: world.url, sub: identity, aud: world.url, act });
    assert.equal(exp - iat, 3600);
    assert.ok(Math.abs(iat - atMs / 1000) < 2, `issued at ${iat}`);
    assert.match(String(jti), /^[0-9a-f]{32}$/);
    const [head = "", payload = "", signature = ""] = token.split(".");
    const header = JSON.parse(Buffer.from(head, "base64url").toString()) as Record<string, string>;
    assert.deepEqual([header.alg, header.typ, Object.keys(header).length], ["ES256", "at+jwt", 3]);
    const rows = await world.harness.app.installation.store.read((tx) => tx.keys.list());
    const key = createPublicKey({
      key: JSON.parse(rows.find(({ kid }) => kid === header.kid)?.publicJwk ?? ""),
      format: "jwk",
    });
    const input = Buffer.from(`${head}.${payload}`);
    assert.ok(verify("sha256", input, { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url")));
  });

  it("has an id of 128 random bits", async () => {
    const identity = await world.workload("many");
    const bearer = world.token({ sub: "many" });
    const ids = await Promise.all(
      Array.from({ length: 100 }, async () => String(claimsOf(await world.exchangeToken({ identity }, bearer)).jti)),
    );
    assert.equal(new Set(ids).size, 100);
    const ones = ids.map((id) => BigInt(`0x${id}`));
    for (let bit = 0n; bit < 128n; bit++) {
      const set = ones.filter((id) => (id >> bit) & 1n).length;
      assert.ok(set > 15 && set < 85, `bit ${bit} is set in ${set} of 100`);
    }
  });

  it("has all audiences of the other token in act", async () => {
    const identity = await world.workload("several");
    const aud = ["https://elsewhere.example", world.url];
    const token = await world.exchangeToken({ identity }, world.token({ sub: "several", aud }));
    assert.deepEqual(claimsOf(token).act, { iss: world.workloads.issuer, sub: "several", aud });
  });

  it("lives an hour, however soon the other token expires", async () => {
    const identity = await world.workload("late");
    const exp = Math.floor(Date.now() / 1000) + 5;
    const claims = claimsOf(await world.exchangeToken({ identity }, world.token({ sub: "late", exp })));
    assert.equal(Number(claims.exp) - Number(claims.iat), 3600);
  });

  const spellings: readonly [name: string, of: (url: string) => string][] = [
    ["the base URL", (url) => url],
    ["the base URL with a slash", (url) => `${url}/`],
    ["localhost", (url) => url.replace("127.0.0.1", "localhost")],
    ["the address of IPv6", (url) => url.replace("127.0.0.1", "[::1]")],
    ["the host alone", (url) => url.replace("http://", "")],
  ];
  for (const [name, of] of spellings) {
    it(`requested by ${name} is rejected or valid`, async () => {
      const identity = await world.workload(`spelling ${name}`, { role: "viewer" });
      const { status, json } = await world.exchange(
        { identity, aud: of(world.url) },
        world.token({ sub: `spelling ${name}` }),
      );
      if (status === 200) {
        const used = await ask(world.url, "/iam/v2beta1/groups", { bearer: String(json.token) });
        assert.equal(used.status, 200, used.text);
      }
      assert.equal(status, name === "the host alone" ? 400 : 200);
    });
  }

  it("is for the base URL alone where that is not the issuer's", async () => {
    const [baseUrl, issuer] = ["http://api.example", "http://issuer.example"];
    const own = await startExchangeWorld({ baseUrl, issuer });
    const identity = await own.workload("ci");
    for (const aud of [baseUrl, issuer, "issuer.example", "api.example"]) {
      const token = await own.exchangeToken({ identity, aud: baseUrl }, own.token({ sub: "ci", aud }));
      assert.deepEqual([claimsOf(token).iss, claimsOf(token).aud], [issuer, baseUrl], `with a token for ${aud}`);
      assert.equal((await ask(own.url, "/auth/v1/ok", { bearer: token })).status, 200);
    }
    for (const aud of [issuer, own.url, "api.example"]) {
      assert.equal((await own.exchange({ identity, aud }, own.token({ sub: "ci", aud: baseUrl }))).status, 400, aud);
    }
    await own.stop();
  });

  for (const [name, parameters, claims] of [
    [
      "a long subject and many long audiences",
      {},
      { sub: "s".repeat(1_000), aud: Array.from({ length: 15 }, (_, i) => `${i}`.repeat(400)) },
    ],
    [
      "many capabilities and groups",
      { cap: [...bits.keys()].slice(0, 20), scopes: Array.from({ length: 32 }, () => randomIds.newUid()) },
      {},
    ],
  ] as const) {
    it(`is one that the service takes, for ${name}`, async () => {
      const sub = "sub" in claims ? claims.sub : name;
      const identity = await world.workload(sub, { role: "viewer" });
      const aud = "aud" in claims ? [...claims.aud, world.url] : world.url;
      const token = await world.exchangeToken({ identity, ...parameters }, world.token({ ...claims, sub, aud }));
      const used = await ask(world.url, "/auth/v1/ok", { bearer: token });
      assert.equal(used.status, 200, `${token.length} characters: ${used.text}`);
    });
  }

  it("is rejected when the token would be too long", async () => {
    const identity = await world.workload("deep");
    let uid = randomIds.newUid();
    for (let depth = 1; depth < 60; depth++) uid = randomIds.newUid(uid);
    const scopes = Array.from({ length: 32 }, () => randomIds.newUid(uid));
    const { status, text } = await world.exchange(
      { identity, scopes: scopes.slice(0, 12) },
      world.token({ sub: "deep" }),
    );
    assert.equal(status, 400, text);
    assert.match(text, /scopes/);
  });
});

describe("the claim cap", () => {
  const capOf = async (
    identity: string,
    subject: string,
    parameters: Readonly<Record<string, string | string[]>> = {},
  ) => {
    const { cap } = claimsOf(await world.exchangeToken({ identity, ...parameters }, world.token({ sub: subject })));
    if (cap === undefined) return undefined;
    return Object.fromEntries(Object.entries(cap as object).map(([group, set]) => [group, decodeNames(set)]));
  };

  it("is absent where there is nothing to tell", async () => {
    assert.equal(await capOf(await world.workload("nothing"), "nothing"), undefined);
  });

  it("has the capabilities at each group", async () => {
    const identity = await world.workload("cap", { role: "viewer" });
    await world.harness.bind(identity, "registry.push", world.root);
    await world.harness.bind(identity, "editor", child);
    assert.deepEqual(await capOf(identity, "cap"), {
      [world.root]: union(await capabilitiesOf("viewer"), await capabilitiesOf("registry.push")),
      [child]: await capabilitiesOf("editor"),
    });
  });

  it("of every capability there is", async () => {
    const identity = await world.workload("owner", { role: "owner" });
    const capabilities = await capabilitiesOf("owner");
    assert.ok(capabilities.length > 100, `${capabilities.length} capabilities`);
    assert.ok(capabilities.includes("billing.manage"), "the highest bit");
    assert.deepEqual(await capOf(identity, "owner"), { [world.root]: capabilities });
  });

  it("is what is left of it where the token is limited", async () => {
    const identity = await world.workload("limited", { role: "viewer" });
    await world.harness.bind(identity, "editor", child);
    const [viewer, editor] = [await capabilitiesOf("viewer"), await capabilitiesOf("editor")];
    assert.deepEqual(await capOf(identity, "limited", { cap: ["groups.list", "iam.nothing"].slice(0, 1) }), {
      [world.root]: ["groups.list"],
      [child]: ["groups.list"],
    });
    assert.deepEqual(await capOf(identity, "limited", { scope: child }), { [child]: union(viewer, editor) });
    assert.deepEqual(await capOf(identity, "limited", { scope: world.root }), { [world.root]: viewer });
    assert.deepEqual(await capOf(identity, "limited", { scopes: [world.root, child] }), {
      [world.root]: viewer,
      [child]: editor,
    });
    assert.equal(await capOf(identity, "limited", { scope: world.foreign }), undefined);
  });

  it("has no right that ends before the token does", async () => {
    const identity = await world.workload("ending", { role: "viewer" });
    const bind = (role: string, hours: number) => {
      const endTimeMs = Date.now() + hours * 3_600_000;
      const row = bindingRow(randomIds.newUid(child), identity, builtinRoleUid(role), { endTimeMs });
      return world.write((tx) => tx.table(roleBindingKind).insert(row));
    };
    await bind("editor", 0.9);
    assert.deepEqual(await capOf(identity, "ending"), { [world.root]: await capabilitiesOf("viewer") });
    await bind("registry.pull", 1.1);
    assert.deepEqual((await capOf(identity, "ending"))?.[child], await capabilitiesOf("registry.pull"));
  });

  it("is left out for more than 16 groups", async () => {
    const identity = await world.workload("wide");
    for (let i = 0; i < 17; i++) {
      await world.harness.bind(identity, "viewer", await newGroup(world.root));
      const cap = await capOf(identity, "wide");
      assert.equal(cap === undefined ? "none" : Object.keys(cap).length, i < 16 ? i + 1 : "none");
    }
  });
});
