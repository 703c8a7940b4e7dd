// The names that `arbor complete-names` finds, and that it neither fails nor logs in.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { completeNames, findNames } from "../../../../src/cli/remote/names/complete.js";
import { type CliWorld, startCliWorld } from "../iam/cli-world.js";

let world: CliWorld;
const token = process.env.ARBOR_TOKEN;
before(async () => {
  world = await startCliWorld();
  const create = async (kind: string, parent: string, name: string, ...args: readonly string[]) =>
    String((await world.json(kind, "create", "--parent", parent, "--name", name, ...args)).uid);
  const team = await create("groups", world.root, "team");
  await create("groups", world.root, "tests");
  await create("groups", team, "inner team");
  const match = ["--issuer", "https://ci.example", "--subject", "a"];
  await create("identities", team, "ci", ...match);
  await create("identities", world.root, "top", ...match);
  await create("roles", team, "reader", "--capability", "groups.list");
  process.env.ARBOR_TOKEN = world.token;
});
after(() => {
  if (token === undefined) delete process.env.ARBOR_TOKEN;
  else process.env.ARBOR_TOKEN = token;
  return world?.stop();
});

const find = (kind: Parameters<typeof findNames>[0], text: string) =>
  findNames(kind, text, { api: world.service.url }, AbortSignal.timeout(60_000));

describe("the names that follow", () => {
  const cases: readonly (readonly [...Parameters<typeof find>, readonly string[]])[] = [
    ["group", "", ["acme.example"]],
    ["group", "b", []],
    ["group", "acme.example/te", ["acme.example/team", "acme.example/tests"]],
    ["group", "acme.example/team/", ["acme.example/team/inner team"]],
    ["group", "acme.example/none/", []],
    ["identity", "acme.example/t", ["acme.example/team/", "acme.example/tests/", "acme.example/top"]],
    ["identity", "acme.example/team/c", ["acme.example/team/ci"]],
    ["role", "vi", ["viewer"]],
    ["role", "acme.example/team/", ["acme.example/team/inner team/", "acme.example/team/reader"]],
    ["repo", "ac", ["acme.example/"]],
  ];
  for (const [kind, text, expected] of cases) {
    it(`${JSON.stringify(text)} as a ${kind}`, async () => assert.deepEqual(await find(kind, text), expected));
  }
});

describe("complete-names", () => {
  it("prints nothing and succeeds without a login, without a service, and with a token that has expired", async () => {
    const expired = `e30.${Buffer.from(JSON.stringify({ exp: 1 })).toString("base64url")}.x`;
    for (const env of [{ ARBOR_TOKEN: "" }, { ARBOR_API: "http://127.0.0.1:1" }, { ARBOR_TOKEN: expired }]) {
      const { code, stdout, stderr } = await world.arbor(env, "complete-names", "group", "--", "acme");
      assert.deepEqual([code, stdout, stderr], [0, "", ""]);
    }
  });

  it("is given to whoever waits for it at last, however long the service takes", async (test) => {
    test.mock.method(globalThis, "fetch", (_: string, { signal }: { signal: AbortSignal }) => {
      return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    });
    await completeNames("group", "acme", { api: world.service.url });
  });
});
