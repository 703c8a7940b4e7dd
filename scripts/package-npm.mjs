// Makes the packages of npm of a release from a checkout that is built: the service, the client, and the command line
// without the commands on the host.
//   npm run package:npm [-- --out DIRECTORY]
// The scope of the latter two is `config.scope` of package.json, and all three have its version. From the same tree come the
// same bytes.
import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";

const SOURCE = resolve(import.meta.dirname, "..");
const { values } = parseArgs({ options: { out: { type: "string", default: "build" } } });
const out = resolve(values.out);
const service = JSON.parse(fs.readFileSync(join(SOURCE, "package.json"), "utf8"));
const { version, license, engines, dependencies, config } = service;
if (!fs.existsSync(join(SOURCE, "dist/client/index.js"))) fail("dist/ is not there: run npm run build first");

fs.mkdirSync(out, { recursive: true });
pack(SOURCE);
withStage(packClient);
withStage(packCli);

function packClient(stage) {
  for (const name of fs.readdirSync(join(SOURCE, "src/client"))) {
    for (const ending of [".js", ".d.ts"]) copy(`dist/client/${name.replace(/\.ts$/, ending)}`, stage);
  }
  for (const name of fs.readdirSync(join(SOURCE, "gen"), { recursive: true })) {
    if (/\.(?:js|d\.ts)$/.test(name)) copy(`gen/${name}`, stage);
  }
  // The types of connect use HeadersInit, which Node's do not have.
  const types = join(stage, "dist/client/index.d.ts");
  fs.writeFileSync(types, `/// <reference lib="dom" />\n${fs.readFileSync(types, "utf8")}`);
  const names = ["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-node", "jose"];
  finish(stage, "client", "TypeScript client of Arbor: typed stubs, tokens, retries, and verification of events", {
    imports: { "#gen/*": "./gen/*" },
    exports: {
      ".": { types: "./dist/client/index.d.ts", default: "./dist/client/index.js" },
      "./gen/*": "./gen/*",
      "./package.json": "./package.json",
    },
    // Of a library, which shares them with the program that uses it.
    dependencies: Object.fromEntries(names.map((name) => [name, `^${dependencies[name]}`])),
  });
}

function packCli(stage) {
  const programs = ["arbor", "docker-credential-arbor"];
  const entries = programs.map((name) => `cli/package/${name}.ts`);
  run(process.execPath, ["scripts/bundle.mjs", join(stage, "dist"), ...entries]);
  copy("gen/api.binpb", stage);
  finish(stage, "cli", "Command line of Arbor over the network, with the credential helper of docker", {
    bin: Object.fromEntries(programs.map((name) => [name, `dist/${name}.js`])),
    // The bundle has all others.
    dependencies: { "jq-wasm": dependencies["jq-wasm"], open: dependencies.open, re2js: dependencies.re2js },
  });
}

function finish(stage, name, description, fields) {
  const fullName = `${config.scope}/${name}`;
  copy("LICENSE", stage);
  const documentation = "Every service has its documentation at `/docs/`.";
  fs.writeFileSync(join(stage, "README.md"), `# ${fullName}\n\n${description}.\n\n${documentation}\n`);
  const manifest = { name: fullName, version, description, license, type: "module", engines, ...fields };
  fs.writeFileSync(join(stage, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  pack(stage);
}

function pack(directory) {
  const args = ["pack", "--silent", "--ignore-scripts", "--pack-destination", out];
  console.log(join(relative("", out), run("npm", args, directory).trim()));
}

function withStage(work) {
  const stage = fs.mkdtempSync(join(tmpdir(), "arbor-npm-"));
  try {
    work(stage);
  } finally {
    fs.rmSync(stage, { recursive: true, force: true });
  }
}

function copy(path, stage) {
  fs.cpSync(join(SOURCE, path), join(stage, path));
}

function run(program, args, cwd = SOURCE) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: "utf8" });
  if (status !== 0) fail(`${program} ${args.join(" ")}: ${error?.message ?? stderr}`);
  return stdout;
}

function fail(reason) {
  console.error(`package:npm: ${reason}`);
  process.exit(1);
}
