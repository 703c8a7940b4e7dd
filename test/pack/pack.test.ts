// The package as internal services get it: packed, installed in a project of
// its own, called through `arbor-platform/client`. It takes half a minute, and
// npm's registry or its cache, so it runs apart from the rest.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, cpSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { docsExample } from "../support/docs-example.js";
import { type Harness, startHarness } from "../support/harness.js";
import { pack } from "../support/packed.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const run = promisify(execFile);
const fixture = (name: string) => fileURLToPath(new URL(`./project/${name}`, import.meta.url));

/** All packages that a client may load. */
const CLIENT_PACKAGES = ["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-node", "arbor-platform"];

describe("the package", () => {
  const project = join(tempDir(), "project");
  let tarball: string;
  let service: Harness;
  let group: string;
  let token: string;

  before(async () => {
    tarball = await pack();
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
    assert.match(readFileSync(join(dist, "bundled-licences.txt"), "utf8"), /^commander \d/m);
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

function packageOf(url: string): string {
  const [first = "", second = ""] = (url.split("/node_modules/").at(-1) ?? "").split("/");
  return first.startsWith("@") ? `${first}/${second}` : first;
}
