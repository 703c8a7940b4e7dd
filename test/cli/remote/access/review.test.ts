// `arbor access review`: the order of bindings by the last use of their identities, and what it does not know.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid, randomIds } from "../../../../src/kernel/ids.js";
import { identityKind } from "../../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../../src/store/iam/role-bindings.js";
import { type IamWorld, startIamWorld } from "../../../iam/iam-world.js";
import { runCommand } from "../../../support/command.js";
import { bindingRow } from "../../../support/rows.js";

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const review = (token: string, ...args: readonly string[]) =>
  runCommand(["access", "review", ...args], { ARBOR_API: world.url, ARBOR_TOKEN: token });

describe("access review", () => {
  it("lists those that were never used first, then the longest unused, and the unknown last", async () => {
    const group = await world.group();
    const below = await world.group(group);
    const person = await world.createBound("viewer", below);
    const reader = await world.createBound("viewer", world.root);
    const uids: Record<string, string> = {};
    for (const [name, lastSeenTimeMs] of [
      ["recent", 300_000],
      ["old", 200_000],
      ["unused", 100_000],
    ] as const) {
      const times = { name, createTimeMs: 100_000, updateTimeMs: 100_000, lastSeenTimeMs };
      uids[name] = (await world.harness.identity(times, below)).uid;
      await world.harness.bind(uids[name], "viewer", name === "old" ? group : below);
    }
    const { code, stdout, stderr } = await review(reader.token, "--group", group, "-o", "json");
    assert.equal(code, 0, stderr);
    const { bindings } = JSON.parse(stdout) as { bindings: { identity: string; lastUsed: string; group: string }[] };
    assert.deepEqual(
      bindings.map(({ identity }) => identity),
      [uids.unused, uids.old, uids.recent, person.uid],
    );
    assert.deepEqual(
      bindings.map(({ lastUsed }) => lastUsed),
      ["never", "1970-01-01T00:03:20.000Z", "1970-01-01T00:05:00.000Z", "unknown"],
    );
    const [, old, recent] = bindings;
    assert.ok(recent?.group.startsWith(`${old?.group}/`), recent?.group);
    const table = await review(reader.token, "--group", group, "--columns", "lastUsed,role");
    assert.match(table.stdout, /^LAST USED {17}ROLE\nnever {21}viewer\n1970/);
  });

  it("does not know of the owner of the host, whose tokens are not counted", async () => {
    const { stdout } = await review(world.owner.token, "--group", world.root, "-o", "jsonl");
    const rows = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.equal(rows.find(({ identity }) => identity === world.owner.uid)?.lastUsed, "unknown");
  });

  it("tells people about themselves, and reads as many pages as there are", async () => {
    const group = await world.group();
    const reader = await world.createBound("viewer", group);
    await world.write(async (tx) => {
      for (let i = 0; i < 450; i++) {
        const row = bindingRow(randomIds.newUid(group), randomIds.newUid(""), builtinRoleUid("viewer"));
        await tx.table(roleBindingKind).insert(row);
      }
    });
    const { stdout, stderr } = await review(reader.token, "--group", group, "-o", "jsonl");
    const rows = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    assert.equal(rows.length, 451, stderr);
    assert.equal(rows[0].identity, reader.uid);
    assert.match(rows[0].lastUsed, /^\d{4}-/);
    assert.ok(await world.write((tx) => tx.table(identityKind).find(reader.uid)));
  });
});
