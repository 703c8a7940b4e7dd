// The package as an operator gets it today: Node 24, npm 12, which runs no
// install script that nobody approved, and a machine without a compiler. It
// takes npm's registry or its cache, so it runs apart from the rest.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { bareEnvironment, getNode, getNpm, type OtherNode } from "../support/other-node.js";
import { pack } from "../support/packed.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const run = promisify(execFile);
const START_MS = 30_000;

describe("the packed service on Node 24, installed with npm 12 where there is no compiler", () => {
  const project = join(tempDir(), "project");
  let node: OtherNode;
  let env: NodeJS.ProcessEnv;
  let service: ReturnType<typeof spawn> | undefined;

  before(async () => {
    const [tarball, npm] = await Promise.all([pack(), getNpm(12)]);
    node = await getNode(24);
    env = bareEnvironment(node, tempDir());
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "operator", private: true }));
    const install = ["install", "--prefer-offline", "--no-audit", "--no-fund", tarball];
    await run(node.program, [npm.cli, ...install], { cwd: project, env });
  });
  after(() => service?.kill("SIGKILL"));

  it("had no compiler, and ran no install script", async () => {
    for (const tool of ["cc", "c++", "gcc", "g++", "clang", "make", "python3", "node-gyp"]) {
      await assert.rejects(run("sh", ["-c", `command -v ${tool}`], { env }), tool);
    }
    const compiled = join(project, "node_modules/better-sqlite3-node20/build/Release/better_sqlite3.node");
    assert.equal(existsSync(compiled), false);
  });

  it("starts, answers and stops", async () => {
    const serve = ["serve", "--data", join(project, "data"), "--listen", "127.0.0.1:0", "--no-access-log"];
    const child = spawn(join(project, "node_modules/.bin/arbor"), serve, { cwd: project, env, timeout: START_MS });
    service = child;
    const closed = once(child, "close");
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const [line] = await Promise.race([once(child.stdout, "data"), closed.then(() => [""])]);
    const url = /^arbor listening on (\S+)\n$/.exec(String(line))?.[1];
    assert.ok(url, stderr);
    const response = await fetch(`${url}/readyz`);
    assert.equal(response.status, 200, await response.text());
    // The documentation is installed with it, and `/` leads there.
    assert.match(await (await fetch(url)).text(), /href="\/docs\/guide\/"/);
    assert.match(await (await fetch(`${url}/docs/guide/`)).text(), /href="\/docs\/guide\/settings\.md"/);
    const page = await fetch(`${url}/docs/guide/settings.md`);
    assert.equal(await page.text(), readFileSync(join(PROJECT, "docs/settings.md"), "utf8"));
    child.kill("SIGTERM");
    assert.deepEqual(await closed, [0, null]);
  });
});
