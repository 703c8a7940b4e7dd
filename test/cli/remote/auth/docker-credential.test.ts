// docker starts the credential helper for every pull, so what the helper loads decides how fast pulls begin.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createProgram } from "../../../../src/cli/program.js";
import { HELPER_ACTIONS } from "../../../../src/cli/remote/auth/docker-credential.js";
import { argumentsWithoutBundle } from "../../../support/project.js";
import { tempDir } from "../../../support/temp-dir.js";
import { run } from "./process.js";

const HOST = "registry.example.com";
const API = "https://platform.example.com";

// Prints each module to standard error when it is loaded.
const HOOKS = `
  import { writeSync } from "node:fs";
  export async function load(url, context, next) {
    writeSync(2, "loaded: " + url + "\\n");
    return next(url, context);
  }`;
const REGISTER = `
  import { register } from "node:module";
  register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(HOOKS)}`)});`;

/** The modules that a command loads, from the tree or from packages. */
async function modulesOf(args: readonly string[], input = ""): Promise<{ stdout: string; modules: string[] }> {
  const file = join(tempDir(), "credentials.json");
  const credentials = {
    version: 1,
    logins: { [API]: { token: "a.b.c", registryToken: "d.e.f" } },
    registries: { [HOST]: { api: API } },
  };
  writeFileSync(file, JSON.stringify(credentials), { mode: 0o600 });
  const hook = ["--import", `data:text/javascript,${encodeURIComponent(REGISTER)}`];
  const command = [...hook, ...argumentsWithoutBundle(), ...args];
  const { code, stdout, stderr } = await run(process.execPath, command, { ARBOR_CREDENTIALS: file }, input).ended;
  assert.equal(code, 0, stderr);
  const urls = [...stderr.matchAll(/^loaded: (file:[^?\n]+)/gm)].map(([, url = ""]) => url);
  const own = urls.map(
    (url) => /\/(?:node_modules\/(?!(?:tsx|esbuild)\/)|src\/(?!.*\/node_modules\/))(.+)$/.exec(url)?.[1],
  );
  return { stdout, modules: own.filter((name) => name !== undefined).map((name) => name.replace(/\.[jt]s$/, "")) };
}

describe("the credential helper", () => {
  it("loads its own few modules, and no package", async () => {
    const { stdout, modules } = await modulesOf(["auth", "docker-credential", "get"], HOST);
    assert.deepEqual(JSON.parse(stdout), { ServerURL: HOST, Username: "_token", Secret: "d.e.f" });
    assert.deepEqual(modules.sort(), [
      "cli/errors",
      "cli/output/terminal",
      "cli/remote/auth/credentials",
      "cli/remote/auth/credentials-file",
      "cli/remote/auth/docker-credential",
      "cli/remote/auth/token-claims",
      "cli/remote/connection-failure",
      "cli/remote/service",
      "client/token-source",
      "kernel/disk-errors",
      "unbundled",
    ]);
  });

  it("is found by the list of modules when it loads a package", async () => {
    const { modules } = await modulesOf(["auth", "token", "--api", API]);
    assert.ok(
      modules.some((name) => name.startsWith("commander/")),
      modules.join("\n"),
    );
    assert.ok(
      !modules.some((name) => /^(?:@connectrpc|@bufbuild|better-sqlite3|drizzle-orm)/.test(name)),
      modules.join(),
    );
  });

  it("takes the actions that its help names", async () => {
    const arbor = await createProgram();
    const auth = arbor.commands.find((command) => command.name() === "auth");
    const helper = auth?.commands.find((command) => command.name() === "docker-credential");
    assert.deepEqual(helper?.registeredArguments[0]?.argChoices, HELPER_ACTIONS);
  });
});
