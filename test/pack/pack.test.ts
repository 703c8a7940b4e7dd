// The package as internal services get it, installed in a project of its own and called through `arbor-platform/client`,
// and as an operator gets it: Node 24, npm 12, which runs no install script that nobody approved, and a machine without
// a compiler. It takes a minute, and npm's registry or its cache, so it runs apart from the rest.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { docsExample } from "../support/docs-example.js";
import { type Harness, startHarness } from "../support/harness.js";
import { bareEnvironment, getNode, getNpm, type OtherNode } from "../support/other-node.js";
import { pack } from "../support/packed.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const run = promisify(execFile);
const fixture = (name: string) => fileURLToPath(new URL(`./project/${name}`, import.meta.url));

/** All packages that a client may load. */
const CLIENT_PACKAGES = ["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-node", "arbor-platform"];

const START_MS = 30_000;

let tarball: string;

before(async () => {
  tarball = await pack();
});

describe("the package", () => {
  const project = join(tempDir(), "project");
  let service: Harness;
  let group: string;
  let token: string;

  before(async () => {
    mkdirSync(project);
    writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
    // Nothing of the server runs here, so its driver for Node 20 need not be compiled.
    const install = ["install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", tarball];
    await run("npm", install, { cwd: project });
    for (const name of ["call.js", "record.js", "resolve-hook.js"]) cpSync(fixture(name), join(project, name));
    service = await startHarness();
    ({ group, token } = await service.organisation("acme.example"));
  });
  after(() => service?.stop());

  /** Runs call.js, with one more import when `extra` is given; answers with the group's name and the packages loaded. */
  async function call(extra = "") {
    const env = { ...process.env, BASE_URL: service.url, TOKEN: token, GROUP: group, EXTRA: extra };
    const { stdout } = await run(process.execPath, ["--import", "./record.js", "call.js"], { cwd: project, env });
    const { name, loaded }: { name: string; loaded: string[] } = JSON.parse(stdout);
    const inPackages = loaded.filter((url) => url.includes("/node_modules/"));
    const packages = new Set(inPackages.map((url) => packageOf(url)));
    return {
      name,
      packages: [...packages].sort(),
      own: inPackages.filter((url) => packageOf(url) === "arbor-platform"),
    };
  }

  it("has the program as a bundle, with the licences of what is in it", () => {
    const dist = join(project, "node_modules/arbor-platform/dist");
    assert.ok(readFileSync(join(dist, "main.js"), "utf8").includes(`import("./chunks/`));
    const licences = readFileSync(join(dist, "bundled-licences.txt"), "utf8");
    assert.match(licences, /^commander \d/m);
    const { libraries } = JSON.parse(readFileSync(join(dist, "console/build.json"), "utf8")) as { libraries: string[] };
    for (const folder of libraries) {
      const name = folder.slice(folder.lastIndexOf("node_modules/") + "node_modules/".length);
      assert.ok(licences.includes(`${name} `), name);
    }
  });

  it("has the console as it is served, and not what it is made of", () => {
    const installed = join(project, "node_modules/arbor-platform");
    const assets = readdirSync(join(installed, "dist/console/assets"));
    for (const pattern of [/^main-\w+\.js$/, /^styles-\w+\.css$/, /^styles-\w+\.css\.br$/, /^styles-\w+\.css\.gz$/])
      assert.ok(
        assets.some((name) => pattern.test(name)),
        `${pattern}: ${assets}`,
      );
    assert.equal(existsSync(join(installed, "console")), false);
    for (const name of ["react", "@arbor-platform"])
      assert.equal(existsSync(join(project, "node_modules", name)), false);
  });

  it("makes typed calls and loads nothing of the server", async () => {
    const { name, packages, own } = await call();
    assert.equal(name, "acme.example");
    assert.deepEqual(packages, CLIENT_PACKAGES);
    const outside = own.filter((url) => !/\/arbor-platform\/(?:dist\/client|gen)\//.test(url));
    assert.deepEqual(outside, []);
  });

  for (const extra of ["pino", "jose"]) {
    it(`would notice ${extra}`, async () => {
      const { packages } = await call(extra);
      assert.ok(packages.includes(extra), packages.join());
    });
  }

  it("has types for TypeScript's own resolution", async () => {
    const compilerOptions = {
      strict: true,
      exactOptionalPropertyTypes: true,
      module: "nodenext",
      target: "es2022",
      // The types of connect mention HeadersInit, which Node's do not have.
      lib: ["es2023", "dom"],
      noEmit: true,
      types: ["node"],
      typeRoots: [join(PROJECT, "node_modules/@types")],
    };
    // It cannot be checked in place, where nothing is installed, and so is no .ts file there.
    cpSync(fixture("types.ts.txt"), join(project, "types.ts"));
    // A program that serves the platform: docs/gateway.md.
    writeFileSync(join(project, "server.ts"), docsExample("gateway.md", "Mounting another Connect service"));
    for (const stub of ["library_pb.js", "library_pb.d.ts"]) {
      cpSync(join(PROJECT, "test/support/library", stub), join(project, stub));
    }
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["types.ts", "server.ts"] }),
    );
    const { stdout } = await run(join(PROJECT, "node_modules/.bin/tsc"), ["-p", "."], { cwd: project }).catch(
      (error: { stdout: string }) => error,
    );
    assert.equal(stdout, "");
  });

  it("has the same bytes wherever and whenever it is packed", async () => {
    const digestOf = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");
    const again = await pack((copy) => utimesSync(join(copy, "README.md"), 1, 1));
    assert.equal(digestOf(again), digestOf(tarball));
    // The control: another text, from the same build.
    appendFileSync(join(dirname(again), "README.md"), ".");
    await run("npm", ["pack", "--silent", "--ignore-scripts"], { cwd: dirname(again) });
    assert.notEqual(digestOf(again), digestOf(tarball));
  });

  it("has the protos and stubs of Google and ours", () => {
    const installed = join(project, "node_modules/arbor-platform");
    for (const file of ["proto/chainguard/platform/iam/v2beta1/groups.proto", "gen/google/rpc/error_details_pb.js"]) {
      assert.ok(readFileSync(join(installed, file)).length > 0, file);
    }
  });
});

describe("the packed service on Node 24, installed with npm 12 where there is no compiler", () => {
  const project = join(tempDir(), "project");
  let node: OtherNode;
  let env: NodeJS.ProcessEnv;
  let service: ReturnType<typeof spawn> | undefined;

  before(async () => {
    const npm = await getNpm(12);
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

  for (const workers of [1, 2]) {
    it(`starts with ${workers} workers, answers and stops`, async () => {
      const address = ["--listen", "127.0.0.1:0", "--workers", String(workers)];
      const serve = ["serve", "--data", join(project, "data"), ...address, "--no-access-log"];
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
      assert.match(await (await fetch(url)).text(), /href="docs\/"/);
      assert.match(await (await fetch(`${url}/docs/`)).text(), /href="settings\.html"/);
      assert.match(await (await fetch(`${url}/docs/settings.html`)).text(), /<code>ARBOR_LISTEN<\/code>/);
      const console = await (await fetch(`${url}/console`)).text();
      const [, path] = /href="([^"]+\.css)"/.exec(console) ?? [];
      const style = await fetch(`${url}${path}`, { headers: { "accept-encoding": "br" } });
      assert.deepEqual([style.status, style.headers.get("content-encoding")], [200, "br"]);
      child.kill("SIGTERM");
      assert.deepEqual(await closed, [0, null]);
    });
  }
});

function packageOf(url: string): string {
  const [first = "", second = ""] = (url.split("/node_modules/").at(-1) ?? "").split("/");
  return first.startsWith("@") ? `${first}/${second}` : first;
}
