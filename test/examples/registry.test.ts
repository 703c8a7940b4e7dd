// examples/docker-registry as its README says, with the registry and the client of Debian.
import assert from "node:assert/strict";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { localImage } from "../registry-e2e/image.js";
import { freePort } from "../support/free-port.js";
import { scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { commandsOf, type Demo, missing, shell, startDemo } from "./follow.js";

const PAGE = "examples/docker-registry/README.md";
const skip = missing(PAGE, "command -v docker-registry", "skopeo --version", "curl --version");
const ARBOR = [process.execPath, ...scriptArguments("src/main.ts")].map((part) => `'${part}'`).join(" ");
// What a terminal has after the commands of examples/README.md, and a policy of skopeo whatever the machine's is.
const TERMINAL = `arbor() { ${ARBOR} "$@"; }\nskopeo() { command skopeo --insecure-policy "$@"; }\ntrap 'kill %1 2>/dev/null || true' EXIT\n`;

describe(PAGE, { skip }, () => {
  let demo: Demo;
  before(async () => {
    demo = await startDemo();
  });
  after(() => demo?.stop());

  const follow = async (cwd: string, more: Readonly<Record<string, string>> = {}) => {
    const env = { ...demo.variables, ...more, REGISTRY_HTTP_ADDR: `127.0.0.1:${await freePort()}` };
    return shell(TERMINAL + commandsOf(PAGE), { cwd, env });
  };

  it("pushes and pulls with the token of the workload, and not without", async () => {
    const cwd = tempDir();
    const image = localImage("an example");
    symlinkSync(image.name.split(":")[1] ?? "", join(cwd, "image"));
    const { stdout } = await follow(cwd);
    assert.match(stdout, /^refused without credentials$/m);
    const pulled = JSON.parse(readFileSync(join(cwd, "pulled/index.json"), "utf8"));
    assert.equal(pulled.manifests[0].digest, image.digest);
  });

  it("refuses an identity that does not match the token", async () => {
    const cwd = tempDir();
    symlinkSync(localImage("refused").name.split(":")[1] ?? "", join(cwd, "image"));
    const IDENTITY = `${demo.variables.IDENTITY?.slice(0, -4)}0000`;
    await assert.rejects(follow(cwd, { IDENTITY }), /invalid username\/password/);
  });
});
