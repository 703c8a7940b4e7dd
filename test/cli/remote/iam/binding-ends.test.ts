// `arbor iam role-bindings create --expires`, `set-end` and the ends in lists, against a real service.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { roleBindingKind } from "../../../../src/store/iam/role-bindings.js";
import { type ExchangeWorld, startExchangeWorld } from "../../../issuer/sts/exchange-world.js";
import { runCommand } from "../../../support/command.js";

const HOUR_MS = 3_600_000;

let world: ExchangeWorld;
before(async () => {
  world = await startExchangeWorld();
});
after(() => world.stop());

const run = (...args: readonly string[]) =>
  runCommand(["iam", "role-bindings", ...args], { ARBOR_API: world.url, ARBOR_TOKEN: world.owner.token });

async function create(...args: readonly string[]): Promise<{ readonly uid: string; readonly endTime?: string }> {
  const { uid: identity } = await world.harness.identity({}, world.root);
  const given = ["--parent", world.root, "--identity", identity, "--role", "viewer", ...args, "-o", "json"];
  const { code, stdout, stderr } = await run("create", ...given);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}
const find = (uid: string) => world.write((tx) => tx.table(roleBindingKind).find(uid));
const assertAbout = (ms: number | null | undefined, hours: number) =>
  assert.ok(Math.abs((ms ?? 0) - Date.now() - hours * HOUR_MS) < HOUR_MS / 2, `${ms}`);

describe("arbor iam role-bindings", () => {
  it("creates one that ends in one call, after a duration or at a time", async () => {
    const { uid, endTime = "" } = await create("--expires", "8h");
    assertAbout((await find(uid))?.endTimeMs, 8);
    assertAbout(Date.parse(endTime), 8);
    const time = "2999-01-31T12:00:00Z";
    assert.equal((await find((await create("--expires", time)).uid))?.endTimeMs, Date.parse(time));
    assert.equal((await find((await create()).uid))?.endTimeMs, null);
  });

  it("sets and removes an end", async () => {
    const { uid } = await create();
    assert.equal((await run("set-end", uid, "--expires", "2h")).code, 0);
    assertAbout((await find(uid))?.endTimeMs, 2);
    assert.equal((await run("set-end", uid, "--never")).code, 0);
    assert.equal((await find(uid))?.endTimeMs, null);
    for (const flags of [[], ["--never", "--expires", "2h"], ["--expires", "soon"]]) {
      assert.equal((await run("set-end", uid, ...flags)).code, 2);
    }
  });

  it("lists when each ends, in tables and where any does", async () => {
    const { uid } = await create("--expires", "2999-01-31T12:00:00Z");
    const { stdout } = await run("list", "--page-all");
    assert.match(stdout.split("\n")[0] ?? "", /ENDS +UID$/);
    assert.match(stdout, new RegExp(`2999-01-31T12:00:00\\S+ +${uid}\n`));
    const json = await run("list", "--page-all", "-o", "json");
    assert.doesNotMatch(json.stdout, /2999/);
  });
});
