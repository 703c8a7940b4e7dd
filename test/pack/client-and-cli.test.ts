// The packages of the client and of the command line, each installed from its tarball in an empty folder and used with a
// service that runs. It takes a minute, and npm's registry or its cache, so it runs apart from the rest.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { readMethods } from "../../src/cli/remote/api/catalogue.js";
import { RECEIVER_SETTINGS, startReceiver } from "../events/receiver.js";
import { type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import { docsExamples } from "../support/docs-example.js";
import { type Packages, packAll } from "../support/packed.js";
import { environmentWithoutSettings, PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";

const run = promisify(execFile);
const HOST = "registry.example.com";
/** The largest installations, in bytes on a disk. */
const LIMITS = { client: 9_000_000, cli: 15_000_000 };

let packages: Packages;
let world: ExchangeWorld;
let identity: string;

before(async () => {
  packages = await packAll();
  world = await startExchangeWorld(RECEIVER_SETTINGS);
  identity = await world.workload("ci", { group: world.root, role: "owner" });
});
after(() => world?.stop());

/** Installs a package in an empty folder, where the tree of this test is not above. */
async function install(tarball: string): Promise<string> {
  const folder = join(tempDir(), "empty");
  fs.mkdirSync(folder);
  await run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", tarball], { cwd: folder });
  fs.writeFileSync(join(folder, "token"), world.token({ sub: "ci" }));
  return folder;
}

describe("the package of the client", () => {
  let folder: string;

  before(async () => {
    folder = await install(packages.client);
  });

  it("is small, and has neither native modules nor packages of the service", (test) => {
    const bytes = sizeOf(join(folder, "node_modules"));
    test.diagnostic(`the client takes ${bytes} bytes`);
    assert.ok(bytes <= LIMITS.client, `${bytes} bytes`);
    assert.deepEqual(
      listFiles(folder).filter((name) => name.includes("/console/")),
      [],
    );
    assert.deepEqual(findNative(folder), []);
    const expected = ["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-node", "jose"];
    assert.deepEqual(listPackages(folder), [`${packages.scope}/client`, ...expected].sort());
  });

  it("would be found with a native module, or with a package that compiles one", () => {
    const planted = tempDir();
    fs.mkdirSync(join(planted, "node_modules/a"), { recursive: true });
    fs.writeFileSync(join(planted, "node_modules/a/package.json"), '{"scripts":{"install":"node-gyp rebuild"}}');
    fs.writeFileSync(join(planted, "node_modules/a/a.node"), "");
    assert.deepEqual(findNative(planted), ["node_modules/a/a.node", "node_modules/a/package.json"]);
  });

  it("has the stubs of every service that is served", () => {
    const files = new Set(readMethods().map(({ parent }) => parent.file.name));
    assert.ok(files.size > 30, `${files.size} files`);
    const stubs = join(folder, "node_modules", packages.scope, "client/gen");
    const missing = [...files].flatMap((name) => [`${name}_pb.js`, `${name}_pb.d.ts`]);
    assert.deepEqual(
      missing.filter((name) => !fs.existsSync(join(stubs, name))),
      [],
    );
  });

  it("compiles without skipLibCheck, and its program exchanges, lists, handles errors and verifies an event", async () => {
    const types = { types: ["node"], typeRoots: [join(PROJECT, "node_modules/@types")] };
    const strict = { strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, target: "es2022", ...types };
    await run("npm", ["pkg", "set", "type=module"], { cwd: folder });
    const workload = fs.readFileSync(new URL("project/workload.ts.txt", import.meta.url), "utf8");
    for (const [name, text] of Object.entries({ workload, docs: docsExamples("client.md", DECLARED) })) {
      fs.writeFileSync(join(folder, `${name}.ts`), text.replaceAll("@arbor-platform/", `${packages.scope}/`));
    }
    const compile = (compilerOptions: object) => {
      const config = { compilerOptions: { ...strict, ...compilerOptions }, files: ["workload.ts", "docs.ts"] };
      fs.writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
      return run(join(PROJECT, "node_modules/.bin/tsc"), ["-p", "."], { cwd: folder }).catch(
        (error: { stdout: string }) => error,
      );
    };
    for (const options of [
      { module: "node16", moduleResolution: "node16", outDir: "out" },
      { module: "node16", moduleResolution: "node16", lib: ["es2022"], noEmit: true },
      { module: "esnext", moduleResolution: "bundler", lib: ["es2022"], noEmit: true },
    ]) {
      assert.equal((await compile(options)).stdout, "", JSON.stringify(options));
    }
    // The control: the types of connect need what those of the client include.
    const index = join(folder, "node_modules", packages.scope, "client/dist/client/index.d.ts");
    const text = fs.readFileSync(index, "utf8");
    fs.writeFileSync(index, text.replace('/// <reference lib="dom" />', ""));
    const { stdout: fault } = await compile({ module: "node16", lib: ["es2022"], noEmit: true });
    assert.match(fault, /Cannot find name 'HeadersInit'/);

    const event = join(folder, "event.json");
    fs.writeFileSync(event, JSON.stringify(await receiveEvent()));
    const settings = { BASE_URL: world.url, GROUP: world.root, IDENTITY: identity, EVENT: event };
    const env = { ...environmentWithoutSettings(), ...settings };
    const { stdout } = await run(process.execPath, ["out/workload.js"], { cwd: folder, env });
    assert.deepEqual(JSON.parse(stdout), {
      names: ["team"],
      missing: "NOT_FOUND",
      fields: ["name"],
      events: 1,
      changed: 403,
      type: "dev.chainguard.api.iam.group.created.v1",
      repeated: false,
    });
  });
});

describe("the package of the command line", () => {
  let folder: string;
  let env: NodeJS.ProcessEnv;

  before(async () => {
    folder = await install(packages.cli);
    const home = join(folder, "home");
    env = { ...environmentWithoutSettings(), HOME: home, XDG_CONFIG_HOME: home, ARBOR_API: world.url };
    delete env.ARBOR_METRICS_LISTEN;
  });

  const bin = (name: string) => join(folder, "node_modules/.bin", name);
  const arbor = (...args: string[]) => run(bin("arbor"), args, { cwd: folder, env });
  async function ask(program: string, action: string, input: string): Promise<string> {
    const answer = run(program, [action], { cwd: folder, env });
    answer.child.stdin?.end(input);
    return (await answer).stdout;
  }
  const own = () => join(folder, "node_modules", packages.scope, "cli");

  it("is small, and has no native module", (test) => {
    const bytes = sizeOf(join(folder, "node_modules"));
    test.diagnostic(`the command line takes ${bytes} bytes`);
    assert.ok(bytes <= LIMITS.cli, `${bytes} bytes`);
    assert.deepEqual(
      listFiles(folder).filter((name) => name.includes("/console/")),
      [],
    );
    assert.deepEqual(findNative(folder), []);
  });

  it("has all that it imports, and the licences of what is in it", () => {
    const { dependencies } = JSON.parse(fs.readFileSync(join(own(), "package.json"), "utf8"));
    const files = fs.readdirSync(join(own(), "dist"), { recursive: true, encoding: "utf8" });
    const code = files.filter((name) => name.endsWith(".js")).map((name) => fs.readFileSync(join(own(), "dist", name)));
    const imports = code.flatMap((text) => [
      ...String(text).matchAll(/\b(?:from|import|import\(|require\d*\()"([@\w.][^"]*)"/g),
    ]);
    const names = imports.map(([, name = ""]) => name.replace(/^node:/, ""));
    const foreign = names.filter((name) => !name.startsWith(".") && !builtinModules.includes(name));
    assert.deepEqual([...new Set(foreign)].sort(), Object.keys(dependencies).sort());
    assert.match(fs.readFileSync(join(own(), "dist/bundled-licences.txt"), "utf8"), /^commander \d/m);
  });

  it("says that the commands on the host are in the package of the service", async () => {
    for (const args of [
      ["serve", "--data", "x"],
      ["bootstrap", "--org", "x"],
      ["admin", "token"],
      ["registry", "sync"],
    ])
      await assert.rejects(arbor(...args), {
        code: 2,
        stderr: /is a command on the host, in the package of the service/,
      });
    await assert.rejects(arbor("audit", "list"), { code: 2, stderr: /--scope: is required/ });
    assert.match((await arbor("--help")).stdout, /The commands on the host \(serve, .*\) are in the package/);
  });

  it("logs in as a workload, and calls the service", async () => {
    const login = await arbor("auth", "login", "--identity", identity, "--identity-token", "token");
    assert.match(login.stdout, /^logged in at /);
    assert.match((await arbor("whoami")).stdout, new RegExp(identity));
    const { stdout } = await arbor("iam", "groups", "list", "-o", "json");
    assert.ok(stdout.includes(world.root), stdout);
    const filtered = await arbor("iam", "groups", "list", "--jq", ".groups[].uid");
    assert.ok(filtered.stdout.split("\n").includes(world.root), filtered.stdout);
    assert.match((await arbor("audit", "list", "--scope", world.root, "--json")).stdout, /^\{/);
    assert.match((await arbor("api", "list")).stdout, /^arbor\.audit\.v1\.AuditService\/ListEvents/m);
    const { version } = JSON.parse(fs.readFileSync(join(PROJECT, "package.json"), "utf8"));
    assert.equal((await arbor("--version")).stdout, `${version}\n`);
  });

  it("has the credential helper of docker, which answers with a token that the service accepts", async () => {
    const workload = ["--identity", identity, "--identity-token", "token"];
    await arbor("auth", "configure-docker", "--registry", HOST, "--bin-dir", join(folder, "bin"), ...workload);
    for (const program of [bin("docker-credential-arbor"), join(folder, "bin/docker-credential-arbor")]) {
      const { ServerURL, Username, Secret } = JSON.parse(await ask(program, "get", HOST));
      assert.deepEqual([ServerURL, Username], [HOST, "_token"]);
      const headers = { authorization: `Bearer ${Secret}` };
      assert.equal((await fetch(`${world.url}/registry/v2/repos`, { headers })).status, 200);
      // It is limited to what a registry needs.
      const post = { method: "POST", body: "{}", headers: { ...headers, "content-type": "application/json" } };
      const refused = await fetch(`${world.url}/iam/v2/groups/${world.root}`, post);
      assert.equal(refused.status, 403, await refused.text());
    }
    assert.deepEqual(JSON.parse(await ask(bin("docker-credential-arbor"), "list", "")), { [HOST]: "_token" });
    await assert.rejects(ask(bin("docker-credential-arbor"), "get", "other.example.com"), { code: 3 });
    await assert.rejects(ask(bin("docker-credential-arbor"), "unknown", ""), { code: 2, stderr: /^usage: / });
  });
});

describe("the packages", () => {
  it("have the same bytes wherever and whenever they are made from a tree, and the name that it sets", async () => {
    const { copy, client, cli } = packages;
    const digestOf = (path: string) => createHash("sha256").update(fs.readFileSync(path)).digest("hex");
    const again = (name: string) => join(copy, "again", name);
    const make = () => run(process.execPath, ["scripts/package-npm.mjs", "--out", "again"], { cwd: copy });
    fs.utimesSync(join(copy, "LICENSE"), 1, 1);
    await make();
    for (const path of [client, cli]) {
      assert.equal(digestOf(again(path.slice(path.lastIndexOf("/") + 1))), digestOf(path));
    }
    const manifest = JSON.parse(fs.readFileSync(join(copy, "package.json"), "utf8"));
    fs.writeFileSync(join(copy, "package.json"), JSON.stringify({ ...manifest, config: { scope: "@acme" } }));
    await make();
    for (const name of ["client", "cli"]) assert.ok(fs.existsSync(again(`acme-${name}-${manifest.version}.tgz`)), name);
  });
});

/** What the examples of docs/client.md use and do not declare. */
const DECLARED = `
declare const uid: string, parent: string, name: string, token: import("@arbor-platform/client").TokenSource;
declare const request: import("node:http").IncomingMessage, body: Buffer;`;

/** Creates a group, and returns the event of it as a sink gets it. */
async function receiveEvent(): Promise<{ headers: object; body: string }> {
  const receiver = await startReceiver();
  try {
    const headers = { authorization: `Bearer ${world.owner.token}`, "content-type": "application/json" };
    const post = async (path: string, body: object) => {
      const response = await fetch(`${world.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
      assert.equal(response.status, 200, await response.text());
    };
    await post(`/events/v2/subscriptions/${world.root}`, { sink: receiver.url });
    await post(`/iam/v2/groups/${world.root}`, { name: "team" });
    const first = await waitUntil(() => receiver.received.find(({ event }) => /\.group\.created\./.test(event.type)));
    return { headers: first.headers, body: first.data.toString() };
  } finally {
    receiver.close();
  }
}

function listFiles(folder: string): string[] {
  return fs.readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
}

/** The bytes that a folder takes on a disk. */
function sizeOf(folder: string): number {
  const sizes = listFiles(folder).map((name) => {
    const { size, blocks } = fs.lstatSync(join(folder, name));
    return Math.max(size, blocks * 512);
  });
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** The names of the packages in a folder. */
function listPackages(folder: string): string[] {
  const manifests = listFiles(folder).map((name) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\/package\.json$/.exec(name));
  return manifests.flatMap((match) => match?.[1] ?? []).sort();
}

/** The native modules below a folder, and the packages that compile or fetch one when they are installed. */
function findNative(folder: string): string[] {
  return listFiles(folder).filter((name) => {
    if (!name.endsWith("/package.json")) return /\.node$|binding\.gyp$/.test(name);
    const { scripts = {} } = JSON.parse(fs.readFileSync(join(folder, name), "utf8"));
    return ["preinstall", "install", "postinstall"].some((script) => script in scripts);
  });
}
