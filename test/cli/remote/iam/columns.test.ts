// The columns of lists and their filters: `-o wide`, `--columns` and `--filter`.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescMessage, DescMethodUnary } from "@bufbuild/protobuf";
import type { ListColumn } from "../../../../src/cli/output/format.js";
import { advisoryResources } from "../../../../src/cli/remote/advisories/commands.js";
import { eventResources } from "../../../../src/cli/remote/events/commands.js";
import { createColumn } from "../../../../src/cli/remote/iam/columns.js";
import { iamResources } from "../../../../src/cli/remote/iam/commands.js";
import { getRowsField } from "../../../../src/cli/remote/iam/resource-commands.js";
import { loadResource } from "../../../../src/cli/remote/iam/resource-rows.js";
import { selectColumns } from "../../../../src/cli/remote/iam/select-columns.js";
import { registryResources } from "../../../../src/cli/remote/registry/commands.js";
import { type CliWorld, startCliWorld } from "./cli-world.js";

let world: CliWorld;
let teams: { readonly uid: string; readonly name: string; readonly createTime: string }[];
before(async () => {
  world = await startCliWorld();
  for (const name of ["alpha", "beta"]) {
    await world.json("groups", "create", "--parent", world.root, "--name", name, "--description", "d ".repeat(80));
  }
  const { groups } = await world.json("groups", "list", "--children-of", world.root, "--order-by", "name");
  teams = groups as typeof teams;
});
after(() => world?.stop());

const list = (...args: readonly string[]) =>
  world.iam("groups", "list", "--children-of", world.root, "--order-by", "name", ...args);
const split = (table: string) =>
  table
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));

/** The fields that are no columns of their messages. */
function findUnknownPath(message: DescMessage, path: string): string | undefined {
  const [name = "", ...rest] = path.split(".");
  const field = message.fields.find((one) => one.jsonName === name);
  if (field === undefined) return path;
  return rest.length > 0 && field.message ? findUnknownPath(field.message, rest.join(".")) : undefined;
}

describe("the columns of lists", () => {
  it("are fields of their rows", async () => {
    const rows = [...iamResources, ...registryResources, ...eventResources];
    const resources = [...(await Promise.all(rows.map(loadResource))), ...advisoryResources];
    const views: { method: DescMethodUnary; columns: readonly ListColumn[] }[] = resources.flatMap((resource) => {
      const { methods, columns, actions = [] } = resource;
      const lists = methods.list && columns ? [{ method: methods.list, columns }] : [];
      return [...lists, ...actions.flatMap(({ method, columns }) => (columns ? [{ method, columns }] : []))];
    });
    assert.ok(views.length > 15);
    const wrong = views.flatMap(({ method, columns }) =>
      columns.filter(({ path }) => path !== undefined && findUnknownPath(getRowsField(method).message, path)),
    );
    assert.deepEqual(wrong, []);
    const { methods } = await loadResource(registryResources[0] ?? assert.fail());
    const row = getRowsField(methods.list ?? assert.fail()).message;
    assert.equal(findUnknownPath(row, "sync_config.source"), undefined);
    assert.equal(findUnknownPath(row, "syncConfig.source"), "syncConfig.source");
  });

  it("are those of --columns, in that order, by the names of fields or of columns", async () => {
    const { code, stdout, stderr } = await list("--columns", "name,create-time,uid");
    assert.equal(code, 0, stderr);
    const rows = teams.map(({ uid, name, createTime }) => [name, createTime, uid]);
    assert.deepEqual(split(stdout), [["NAME", "CREATED", "UID"], ...rows]);
    assert.equal((await list("--columns", "Name, CREATED,uid")).stdout, stdout);
  });

  it("show fields of messages in a row", async () => {
    const found = await world.iam("role-bindings", "list", "--columns", "role.name,identity.uid");
    assert.deepEqual(split(found.stdout), [
      ["ROLE", "IDENTITY"],
      ["owner", world.owner],
    ]);
  });

  it("are all simple fields with -o wide, between those of the table and the uid, and nothing is cut", async () => {
    const { code, stdout, stderr } = await list("-o", "wide");
    assert.equal(code, 0, stderr);
    const [header = [], ...rows] = split(stdout);
    const [short = []] = split((await list()).stdout);
    assert.deepEqual(header.slice(0, short.length - 1), short.slice(0, -1));
    assert.equal(header.at(-1), "UID");
    assert.ok(header.includes("UPDATE TIME"), header.join());
    assert.equal(new Set(header).size, header.length);
    assert.equal(rows.length, 2);
    const { methods } = await loadResource(iamResources[0] ?? assert.fail());
    const row = getRowsField(methods.list ?? assert.fail()).message;
    const own = [createColumn("NAME", "name")];
    assert.ok(selectColumns(row, own, { output: "wide" }).length > selectColumns(row, own, { output: "table" }).length);
  });

  it("print one resource as a table with -o wide", async () => {
    const uid = teams[0]?.uid ?? "";
    const wide = await world.iam("groups", "get", uid, "-o", "wide");
    assert.equal(wide.stdout, (await world.iam("groups", "get", uid)).stdout);
    assert.match(wide.stdout, /alpha/);
  });

  const rejected: readonly (readonly [args: readonly string[], error: string])[] = [
    [["--columns", "name,nothing"], "there is no column nothing: the columns are name, description, createTime, uid"],
    [["--columns", "name,"], "there is no column : the columns are"],
    [["--columns", "name", "-o", "json"], "--columns: is for tables and CSV, not for -o json"],
  ];
  for (const [args, error] of rejected) {
    it(`are not ${args.join(" ")}`, async () => {
      const { code, stdout, stderr } = await list(...args);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.ok(stderr.includes(error), stderr);
    });
  }
});

describe("--filter", () => {
  it("is the same as the flag of the filter", async () => {
    const { code, stdout, stderr } = await list("--filter", "name=beta");
    assert.equal(code, 0, stderr);
    assert.equal(stdout, (await list("--name", "beta")).stdout);
    assert.equal(split(stdout).length, 2);
    const filters = ["--filter", `children_of=${world.root}`, "--filter", "name=alpha", "--filter", "in-root=false"];
    assert.equal(split((await world.iam("groups", "list", ...filters)).stdout)[1]?.[0], "alpha");
    const roots = await world.iam("groups", "list", "--filter", "in-root=true", "--columns", "uid");
    assert.deepEqual(split(roots.stdout), [["UID"], [world.root]]);
  });

  it("can be given more than once where the flag can", async () => {
    const [alpha, beta] = teams.map(({ uid }) => uid);
    const both = await world.iam("groups", "list", "--id", `${alpha}`, "--filter", `id=${beta}`, "--columns", "uid");
    assert.deepEqual(
      split(both.stdout)
        .slice(1)
        .map(([uid]) => uid)
        .sort(),
      [alpha, beta].sort(),
    );
  });

  const rejected: readonly (readonly [args: readonly string[], error: string])[] = [
    [["--filter", "name"], "--filter: must be NAME=VALUE with one of these names: ancestors-of, descendants-of"],
    [["--filter", "page-size=1"], "--filter: must be NAME=VALUE"],
    [["--filter", "colour=red"], "--filter: must be NAME=VALUE"],
    [["--filter", "name=a", "--filter", "name=b"], "--filter: name must be given once, and not together with --name"],
    [["--name", "a", "--filter", "name=b"], "--filter: name must be given once, and not together with --name"],
    [["--filter", "in-root=yes"], "--filter: in-root must be true or false"],
  ];
  for (const [args, error] of rejected) {
    it(`rejects ${args.join(" ")}`, async () => {
      const { code, stdout, stderr } = await world.iam("groups", "list", ...args);
      assert.deepEqual([code, stdout], [2, ""]);
      assert.ok(stderr.includes(error), stderr);
    });
  }
});
