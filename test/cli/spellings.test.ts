// One spelling for what is the same, and the former ones, which go on working.
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.js";
import { type Finished, runCommand } from "../support/command.js";
import { tempDir } from "../support/temp-dir.js";

const program = await createProgram();

function find(path: string): Command {
  return path.split(" ").reduce((at, name) => {
    const next = at.commands.find((one) => one.name() === name || one.aliases().includes(name));
    assert.ok(next, path);
    return next;
  }, program);
}

/** The flag of version 1.3 and the flag that the help shows, with a command that has both. */
const flags = [
  ["iam role-bindings create", "--identity-uid", "--identity"],
  ["iam role-bindings create", "--role-uid", "--role"],
  ["iam role-bindings update", "--role-uid", "--role"],
  ["iam group-invites create", "--role-uid", "--role"],
  ["iam group-mappings create", "--role-uid", "--role"],
  ["iam group-mappings list", "--identity-provider-uid", "--identity-provider"],
  ["audit list", "--limit", "--page-size"],
  ["audit list", "--root", "--org"],
  ["audit tail", "--root", "--org"],
  ["audit verify", "--root", "--org"],
  ["audit export", "--root", "--org"],
  ["admin quotas list", "--group", "--org"],
  ["admin quotas set", "--group", "--org"],
  ["bootstrap", "--json", "--output"],
  ["backup", "--json", "--output"],
  ["check", "--json", "--output"],
  ["copy", "--json", "--output"],
  ["config print", "--json", "--output"],
  ["admin bind", "--json", "--output"],
  ["admin roles create", "--json", "--output"],
  ["admin roles list", "--json", "--output"],
  ["admin keys rotate", "--json", "--output"],
  ["admin keys list", "--json", "--output"],
  ["admin quotas list", "--json", "--output"],
  ["admin jobs list", "--json", "--output"],
  ["audit list", "--json", "--output"],
  ["audit tail", "--json", "--output"],
] as const;

describe("a former flag", () => {
  for (const [path, former, now] of flags) {
    it(`${former} of arbor ${path} sets ${now}, and no help shows it`, () => {
      const { options } = find(path);
      const [old, current] = [former, now].map((name) => options.find(({ long }) => long === name));
      assert.equal(old?.attributeName(), current?.attributeName());
      assert.deepEqual([old?.hidden, current?.hidden], [true, false]);
    });
  }

  it("is the only flag with the name of a field that holds a uid", () => {
    const shown: string[] = [];
    const collect = (command: Command) => {
      shown.push(...command.options.filter(({ hidden }) => !hidden).map(({ long }) => long ?? ""));
      command.commands.forEach(collect);
    };
    collect(program);
    assert.deepEqual(
      shown.filter((name) => /-uid$/.test(name)),
      [],
    );
    assert.deepEqual(
      shown.filter((name) => ["--json", "--limit", "--root", "--after"].includes(name)),
      [],
    );
    assert.ok(shown.includes("--identity"));
  });

  for (const [former, now] of [
    ["admin identity", "admin identities"],
    ["admin group", "admin groups"],
    ["admin role", "admin roles"],
    ["admin quota", "admin quotas"],
    ["auth pull-token", "auth pull-tokens"],
  ] as const) {
    it(`so is the command ${former}, which is ${now}`, () => assert.equal(find(former), find(now)));
  }
});

describe("both spellings on the host", () => {
  const data = tempDir();
  const onHost = (...args: readonly string[]): Promise<Finished> => runCommand([...args, "--data", data]);
  before(async () => {
    assert.equal((await onHost("bootstrap", "--org", "acme.example", "-o", "json")).code, 0);
    assert.equal((await onHost("admin", "roles", "create", "--capability", "repo.update")).code, 0);
  });

  for (const [former, now] of [
    [
      ["admin", "role", "list", "--json"],
      ["admin", "roles", "list", "-o", "jsonl"],
    ],
    [
      ["admin", "quota", "list", "--group", "acme.example", "--json"],
      ["admin", "quotas", "list", "--org", "acme.example", "--output", "jsonl"],
    ],
    [
      ["audit", "list", "--root", "acme.example", "--json", "--limit", "3"],
      ["audit", "list", "--org", "acme.example", "-o", "jsonl", "--page-size", "3"],
    ],
    [
      ["config", "print", "--json"],
      ["config", "print", "-o", "json"],
    ],
    [
      ["admin", "keys", "list"],
      ["admin", "keys", "list", "-o", "table"],
    ],
  ] as const) {
    it(`print the same: ${former.join(" ")}`, async () => {
      const [before, after] = [await onHost(...former), await onHost(...now)];
      assert.equal(after.code, 0, after.stderr);
      assert.notEqual(after.stdout, "");
      assert.deepEqual(before, after);
    });
  }

  it("choose the columns of the audit log, and filter it", async () => {
    const { stdout } = await onHost(
      "audit",
      "list",
      "--columns",
      "type,method",
      "--filter",
      "type=arbor.token.issued.v1",
    );
    assert.match(stdout, /^TYPE +METHOD\n/);
    const all = await onHost("audit", "list", "--columns", "type");
    assert.ok(all.stdout.split("\n").length > stdout.split("\n").length);
  });

  it("take the formats that there are", async () => {
    const { code, stderr } = await onHost("admin", "keys", "list", "-o", "xml");
    assert.equal(code, 2);
    assert.match(stderr, /Allowed choices are table, wide, name, csv, jsonl/);
  });
});
