// Whatever an organisation has: `arbor export`, applied to an empty organisation, is exported the same again, and applying a
// file twice changes nothing. Organisations are random, of a seed that a failure names.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type ApplyWorld, OWNER, startApplyWorld } from "./apply-world.js";

const SEEDS = 6;
const DAY_MS = 24 * 60 * 60 * 1000;

let world: ApplyWorld;
before(async () => {
  world = await startApplyWorld();
});
after(() => world.stop());

type Json = Record<string, unknown>;

/** Numbers from 0 to 1 that depend on the seed alone (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let next = Math.imul(state ^ (state >>> 15), state | 1);
    next ^= next + Math.imul(next ^ (next >>> 7), next | 61);
    return ((next ^ (next >>> 14)) >>> 0) / 4_294_967_296;
  };
}

class Generator {
  readonly #random: () => number;
  readonly #nowMs = Math.floor(Date.now() / 1000) * 1000;
  #count = 0;

  constructor(seed: number) {
    this.#random = createRandom(seed);
  }

  #int(max: number): number {
    return Math.floor(this.#random() * max);
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#int(items.length)] as T;
  }

  #maybe(fields: Json): Json {
    return this.#random() < 0.5 ? fields : {};
  }

  // Names that YAML, paths or HCL could take for something else. The number makes each of its own.
  #name(): string {
    const odd = [
      "a",
      "true",
      "null",
      "1.0",
      "0x1f",
      "- x",
      " x ",
      "..",
      ".",
      "_",
      "no",
      "2026-01-01",
      "1e3",
      "~".replace("~", "-"),
      "x  y",
    ];
    return `${this.#pick(odd)}${this.#count++}`;
  }

  #text(): string {
    const odd = [
      "plain",
      "# no comment",
      `$\{x} %{y} $$\{z}`,
      'quo"te\\',
      "'single'",
      "ünïcödé 🦉",
      "a: b",
      "- list",
      "&anchor *alias",
      "!tag",
      "| >",
      " blanks ",
      "1",
      "{}",
      "[]",
    ];
    return this.#pick(odd);
  }

  #pattern(): string {
    return this.#pick(["repo:acme/.+", "[a-z]+\\.x", "a|b", "\\d{2,3}", "x.*[^\"']"]);
  }

  #conditions(): Json[] {
    const path = ["a", this.#pick(["b.c", "kubernetes.io", "x y", "ü"]), String(this.#count++)];
    const tests: Json[] = [
      { equals: this.#pick(["1", 1, true, -9_007_199_254_740_991, `$\{x}`]) },
      { oneOf: this.#pick([["a", "b"], [1, 2], [false]]) },
      { prefix: this.#text() },
      { pattern: this.#pattern() },
      { contains: this.#pick(["x", 7]) },
      { exists: true },
    ];
    return [{ path, ...this.#pick(tests), ...this.#maybe({ negated: true }) }];
  }

  #claimMatch(): Json {
    return {
      ...this.#pick<Json>([{ issuer: "https://issuer.example/x" }, { issuerPattern: "https://issuer\\.example/.+" }]),
      ...this.#pick<Json>([{ subject: this.#text() }, { subjectPattern: this.#pattern() }]),
      ...this.#pick<Json>([{}, { audience: this.#text() }, { audiencePattern: this.#pattern() }]),
      ...this.#maybe({ claims: { "dotted.name": this.#text(), b: "c" } }),
      ...this.#maybe({ claimPatterns: { "https://claim.example/x": this.#pattern() } }),
    };
  }

  #relationship(): Json {
    const aws = {
      awsAccount: "123456789012",
      ...this.#pick<Json>([{ arn: "arn:aws:iam::1:x" }, { arnPattern: "arn:.+" }]),
      ...this.#pick<Json>([{ userId: this.#text() }, { userIdPattern: "A.+" }]),
    };
    const keys = {
      issuer: "https://keys.example",
      subject: this.#text(),
      issuerKeys: JSON.stringify({ keys: [{ kty: "RSA", n: this.#text() }] }),
      expirationTime: new Date(this.#nowMs + (1 + this.#int(300)) * DAY_MS).toISOString(),
      ...this.#maybe({ audiences: ["https://audience.example"] }),
    };
    const conditional = this.#pick<Json>([{ claimMatch: this.#claimMatch() }, { staticKeys: keys }]);
    return this.#pick<Json>([
      conditional,
      { ...conditional, conditions: this.#conditions() },
      { awsIdentity: aws },
      { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" },
    ]);
  }

  file(organization: string): Json {
    const paths = ["/"];
    const below = (path: string, name: string) => (path === "/" ? `/${name}` : `${path}/${name}`);
    // Half of the groups lie in the one before, so that some are deep.
    for (let i = 0; i < 14; i++)
      paths.push(below(this.#random() < 0.5 ? (paths.at(-1) ?? "/") : this.#pick(paths), this.#name()));
    const capabilities = [
      "groups.list",
      "groups.create",
      "repo.list",
      "identity.list",
      "roles.list",
      "manifest.list",
      "tag.list",
    ];
    const roles = Array.from({ length: 4 }, () => ({
      path: below(this.#pick(paths), this.#name()),
      ...this.#maybe({ description: this.#text() }),
      capabilities: capabilities.filter((_, i) => i === 0 || this.#random() < 0.5).reverse(),
    }));
    const identities = Array.from({ length: 8 }, () => ({
      path: below(this.#pick(paths), this.#name()),
      ...this.#maybe({ description: this.#text() }),
      ...this.#maybe({ company: this.#text() }),
      ...this.#relationship(),
    }));
    const bindings = new Map<string, Json>([["owner", { group: "/", identity: OWNER, role: "owner" }]]);
    for (let i = 0; i < 12; i++) {
      const { path: identity } = this.#pick(identities);
      const own = this.#pick(roles);
      const roleGroup = own.path.slice(0, own.path.lastIndexOf("/")) || "/";
      const [group, role] = this.#pick([
        [this.#pick(paths), this.#pick(["viewer", "editor", "registry.pull"])],
        [roleGroup, own.path],
      ]);
      const endTime = new Date(this.#nowMs + (1 + this.#int(900)) * DAY_MS + 123).toISOString();
      bindings.set(`${group} ${identity} ${role}`, { group, identity, role, ...this.#maybe({ endTime }) });
    }
    const sinks = new Map<string, Json>();
    for (let i = 0; i < 3; i++) {
      const [group, sink] = [this.#pick(paths), `https://sink.example/${this.#pick(["a", "b?c=%20", "~x"])}`];
      sinks.set(`${group} ${sink}`, { group, sink });
    }
    const allowed = [
      { issuer: "https://issuer.example/x", conditions: this.#conditions() },
      { origin: "https://other.example" },
    ];
    return {
      organization,
      groups: paths.map((path) => ({ path, ...this.#maybe({ description: this.#text() }) })),
      roles,
      identities,
      roleBindings: [...bindings.values()],
      subscriptions: [...sinks.values()],
      // The guard allows the identities that there are, or would reject them.
      ...(identities.some((one) => JSON.stringify(one).includes("issuerPattern"))
        ? {}
        : { issuerGuard: { issuers: allowed } }),
    };
  }
}

describe("arbor export and arbor apply", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    it(`give an equal organisation: seed ${seed}`, async () => {
      const [one, other] = [`one-${seed}`, `other-${seed}`];
      await world.organisation(one);
      await world.organisation(other);
      const file = new Generator(seed).file(one);
      const path = world.file(file);
      const made = await world.arbor("apply", "-f", path, "--yes");
      assert.equal(made.code, 0, made.stderr);
      const again = await world.arbor("apply", "-f", path, "--prune", "--dry-run");
      assert.deepEqual([again.code, again.stderr], [0, ""], again.stdout);

      const exported = await world.arbor("export", one);
      assert.deepEqual([exported.code, exported.stderr], [0, ""]);
      const copied = await world.arbor("apply", "-f", world.file(exported.stdout), "--into", other, "--yes");
      assert.equal(copied.code, 0, copied.stderr);
      const [before, after] = [await world.exported(one), await world.exported(other)];
      assert.deepEqual(after, { ...before, organization: other });
      assert.equal((before.identities as unknown[]).length, 8);
      const same = await world.arbor(
        "apply",
        "-f",
        world.file(exported.stdout),
        "--into",
        other,
        "--prune",
        "--dry-run",
      );
      assert.deepEqual([same.code, same.stderr], [0, ""], same.stdout);
    });
  }

  it("find a difference of one field", async () => {
    await world.organisation("differs");
    const file = (description: string) =>
      world.file({ organization: "differs", groups: [{ path: "/x", description }] });
    assert.equal((await world.arbor("apply", "-f", file("a"), "--yes")).code, 0);
    const { code, stdout } = await world.arbor("apply", "-f", file("b"), "--dry-run");
    assert.equal(code, 2);
    assert.match(stdout, /^~ group \/x\n {4}description: "a" → "b"$/m);
  });
});
