// Lists: filters and order, pages one by one and all of them, in every format.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { parse } from "yaml";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { type CliWorld, startCliWorld } from "./cli-world.js";
import { startFakeService } from "./fake-service.js";

const NAMES = ["a1", "a2", "a3", "a4", "a5"];

let world: CliWorld;
let children: readonly string[];
before(async () => {
  world = await startCliWorld();
  for (const name of NAMES) {
    await world.json("groups", "create", "--parent", world.root, "--name", name, "--description", `the ${name}\u202e`);
  }
  children = ["groups", "list", "--children-of", world.root];
});
after(() => world?.stop());

const pages = ["--order-by", "name desc", "--page-size", "2", "--page-all"];
const readExpected = () =>
  world.rest(`/groups?uidp.children_of=${world.root}&order_by=name%20desc`) as Promise<{ groups: { name: string }[] }>;

describe("a list", () => {
  it("is filtered, ordered and cut into pages as asked", async () => {
    const list = [...children, "--order-by", "name desc", "--skip", "1", "--page-size", "2"];
    const first = await world.json(...list);
    assert.deepEqual([namesIn(first), first.totalCount, first.skipped], [["a4", "a3"], "5", 1]);
    const second = await world.json(...list, "--page-token", String(first.nextPageToken));
    assert.deepEqual(namesIn(second), ["a2", "a1"]);
    assert.deepEqual(namesIn(await world.json("groups", "list", "--in-root")), ["acme.example"]);
    assert.deepEqual(namesIn(await world.json("groups", "list", "--name", "a2")), ["a2"]);
    const above = ["--ancestors-of", `${world.root}/0123456789abcdef`];
    assert.deepEqual(namesIn(await world.json("groups", "list", ...above)), ["acme.example"]);
  });

  it("of all pages is one document of JSON, as one page would be", async () => {
    const { code, stdout, stderr } = await world.iam(...children, ...pages, "-o", "json");
    assert.deepEqual([code, stderr], [0, ""]);
    assert.deepEqual(JSON.parse(stdout), await readExpected());
    const { stdout: whole } = await world.iam(...children, "--order-by", "name desc", "-o", "json");
    assert.equal(stdout, whole);
  });

  it("of all pages is one document of YAML", async () => {
    const { stdout } = await world.iam(...children, ...pages, "-o", "yaml");
    assert.deepEqual(parse(stdout), await readExpected());
  });

  it("in jsonl is a line for each", async () => {
    const { stdout } = await world.iam(...children, ...pages, "-o", "jsonl");
    const rows = stdout.trimEnd().split("\n");
    assert.deepEqual(
      rows.map((row) => JSON.parse(row)),
      (await readExpected()).groups,
    );
  });

  it("in a table has one header and lines that are aligned", async () => {
    const { stdout, stderr } = await world.iam(...children, ...pages);
    const [header = "", ...rows] = stdout.trimEnd().split("\n");
    assert.match(header, /^NAME +DESCRIPTION +CREATED +UID$/);
    assert.equal(rows.length, NAMES.length);
    for (const row of rows) {
      assert.match(row, /^a\d {4}the a\d\\u202e {2}\d{4}-\d\d-\d\dT\S+ {2}[0-9a-f/]+$/);
    }
    assert.equal(stderr, "");
  });

  it("that is empty is an empty list", async () => {
    const none = ["groups", "list", "--name", "nobody"];
    assert.deepEqual(await world.json(...none), { groups: [], totalCount: "0", skipped: 0 });
    assert.deepEqual(parse((await world.iam(...none, "-o", "yaml")).stdout), {
      groups: [],
      totalCount: "0",
      skipped: 0,
    });
    assert.equal((await world.iam(...none, "-o", "jsonl")).stdout, "");
    assert.equal((await world.iam(...none)).stdout, "NAME  DESCRIPTION  CREATED  UID\n");
  });

  it("tells on standard error that there is more, and how far it is", async () => {
    const cut = await world.iam(...children, "--page-size", "2");
    assert.match(cut.stderr, /^arbor: there are more: --page-all, or --page-token [\w-]+\n$/);
    const told = await world.iam(...children, ...pages, "--progress", "-o", "jsonl");
    assert.equal(told.stderr, "2 of 5\n4 of 5\n5 of 5\n");
    assert.equal(told.stdout.trimEnd().split("\n").length, NAMES.length);
  });

  it("that breaks off is a whole document that says where to go on", async (t) => {
    const service = await startFakeService((router) => {
      router.service(GroupsService, {
        listGroups({ pageToken }) {
          if (pageToken !== "") throw new ConnectError("Permission denied: groups", Code.PermissionDenied);
          return { groups: [{ name: "a5" }, { name: "a4" }], nextPageToken: "more", totalCount: 5n };
        },
      });
    });
    t.after(() => service.stop());
    const listFrom = (format: string) => world.iamWith({ ARBOR_API: service.url }, ...children, ...pages, "-o", format);
    const json = await listFrom("json");
    const needed = "  ListGroups needs the capability groups.list; arbor whoami prints what you may do\n";
    assert.deepEqual([json.code, json.stderr], [4, `arbor: Permission denied: groups\n${needed}`]);
    const document = JSON.parse(json.stdout) as { groups: { name: string }[]; nextPageToken: string };
    assert.deepEqual([namesIn(document), document.nextPageToken], [["a5", "a4"], "more"]);
    assert.deepEqual(parse((await listFrom("yaml")).stdout), document);
  });

  it("asks for the largest pages when all are wanted", async () => {
    const pageSizes: number[] = [];
    const service = await startFakeService((router) => {
      router.service(GroupsService, {
        listGroups({ pageSize, pageToken }) {
          pageSizes.push(pageSize);
          return { groups: [{ name: "a" }], nextPageToken: pageToken === "" ? "more" : "" };
        },
      });
    });
    for (const args of [[], ["--page-all"], ["--page-all", "--page-size", "7"]]) {
      await world.iamWith({ ARBOR_API: service.url }, "groups", "list", ...args);
    }
    assert.deepEqual(pageSizes, [0, 200, 200, 7, 7]);
    await service.stop();
  });
});

function namesIn(list: object): string[] {
  return (list as { groups: { name: string }[] }).groups.map(({ name }) => name);
}
