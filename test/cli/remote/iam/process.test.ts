// The commands as processes of their own: standard input, pipes that close, exit codes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { spawn } from "../../../support/child-process.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../../support/project.js";
import { type CliWorld, startCliWorld } from "./cli-world.js";
import { startFakeService } from "./fake-service.js";

let world: CliWorld;
before(async () => {
  world = await startCliWorld();
});
after(() => world?.stop());

const start = (args: readonly string[], ...more: readonly string[]) => run(["iam", ...args], ...more);

function run(args: readonly string[], api = world.service.url, redirect = "") {
  const command = [process.execPath, ...scriptArguments("src/main.ts"), ...args];
  return spawn("sh", ["-c", `exec "$0" "$@" ${redirect}`, ...command], {
    cwd: PROJECT,
    env: { ...environmentWithoutSettings(), ARBOR_API: api, ARBOR_TOKEN: world.token },
  });
}

async function finish(child: ReturnType<typeof start>, input = "") {
  child.stdin.end(input);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code: code as number, stdout, stderr };
}

describe("a process", () => {
  it("reads a resource from standard input", async () => {
    const args = ["groups", "create", "--parent", world.root, "--file", "-", "-o", "json"];
    const { code, stdout, stderr } = await finish(start(args), "name: piped\ndescription: by a pipe\n");
    assert.deepEqual([code, stderr], [0, ""]);
    const { name, description } = JSON.parse(stdout);
    assert.deepEqual([name, description], ["piped", "by a pipe"]);
  });

  it("ends with the class of what went wrong, and shows no stack", async () => {
    const wrong = await finish(start(["groups", "create", "--parent", world.root, "--name", "X"]));
    assert.deepEqual([wrong.code, wrong.stdout], [2, ""]);
    const missing = await finish(start(["groups", "get", `${world.root}/0123456789abcdef`]));
    assert.deepEqual([missing.code, missing.stdout], [5, ""]);
    for (const { stderr } of [wrong, missing]) assert.doesNotMatch(stderr, /\n {4}at |file:/);
  });

  it("deletes nothing where nobody can be asked", async () => {
    const { code, stderr } = await finish(start(["groups", "delete", world.root]), "y\n");
    assert.equal(code, 2);
    assert.equal(stderr, "arbor: --yes: is required without a terminal; see arbor iam groups delete --help\n");
    assert.equal((await world.rest(`/groups/${world.root}`)).uid, world.root);
  });

  it("says when its answer could not be written", { skip: !existsSync("/dev/full") && "no /dev/full" }, async () => {
    const error = "arbor: standard output cannot be written to (ENOSPC)\n";
    for (const args of [
      ["groups", "list"],
      ["groups", "--help"],
    ]) {
      const { code, stderr } = await finish(start(args, world.service.url, "> /dev/full"));
      assert.deepEqual([code, stderr], [1, error]);
    }
    const { code, stderr } = await finish(run(["--version"], world.service.url, "> /dev/full"));
    assert.deepEqual([code, stderr], [1, error]);
  });

  for (const format of ["table", "json", "jsonl", "yaml"]) {
    it(`ends quietly when nobody reads its ${format} any more`, async () => {
      // A list without an end: the command must stop by itself.
      let pages = 0;
      const service = await startFakeService((router) => {
        router.service(GroupsService, {
          listGroups: () => {
            pages++;
            return { groups: Array(200).fill({ name: "x".repeat(500) }), nextPageToken: "more", totalCount: 9n };
          },
        });
      });
      const child = start(["groups", "list", "--page-all", "-o", format], service.url);
      child.stdin.end();
      const errorText = text(child.stderr);
      child.stdout.once("data", () => child.stdout.destroy());
      const [code, signal] = await once(child, "close");
      assert.deepEqual([code, signal, await errorText], [0, null, ""]);
      assert.ok(pages > 0);
      await service.stop();
    });
  }
});
