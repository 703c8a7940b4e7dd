// docs/stubs.md as it stands: what generators of other languages need of a checkout, and that what they make works.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { blockOf, type Demo, GO_MODULES, missing, shell, startDemo } from "./follow.js";

const PAGE = "docs/stubs.md";
const NO_PROTOC = missing("protoc", "protoc --version");
const NO_PYTHON =
  NO_PROTOC ||
  missing("Python", "/usr/bin/python3 -s -c 'import grpc, google.protobuf'", "command -v grpc_python_plugin");
const NO_GO = NO_PROTOC || missing("Go", GO_MODULES);
const GRPCURL = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3";
const NO_GRPCURL = missing("grpcurl", `command -v grpcurl || { cd / && go install -n ${GRPCURL}; }`);

let demo: Demo;
let token: string;
before(async () => {
  demo = await startDemo();
  const exchange = `curl -sSf -G -H "Authorization: Bearer $(cat "$TOKEN_FILE")" -d "aud=$ARBOR_API" -d "identity=$IDENTITY" "$ARBOR_API/sts/exchange"`;
  const { stdout } = await shell(exchange, { env: demo.variables });
  token = JSON.parse(stdout).token;
});
after(() => demo?.stop());

const follow = (commands: string, cwd = tempDir()) =>
  shell(commands, { cwd, env: { ...demo.variables, TOKEN: token } });

describe("generators", () => {
  const imported =
    "from chainguard.platform.iam.v2 import groups_pb2 as g; print(g.DESCRIPTOR.services_by_name['GroupsService'].full_name)";
  const python = (folder: string) => `PYTHONPATH=${folder} /usr/bin/python3 -B -s -c "${imported}"`;

  it("buf exports all protos to one folder, from which protoc needs no other", { skip: NO_PROTOC }, async () => {
    const cwd = tempDir();
    const all =
      "protoc -I protos -I own --descriptor_set_out=all.binpb $(cd protos && find chainguard arbor -name '*.proto')";
    // Not all of that package, which has what is to be found in protos as well.
    mkdirSync(join(cwd, "own/google"), { recursive: true });
    symlinkSync(join(PROJECT, "node_modules/google-proto-files/google/protobuf"), join(cwd, "own/google/protobuf"));
    await follow(`${blockOf(PAGE, "export")}\n${all}`, cwd);
    assert.ok(existsSync(join(cwd, "protos/google/api/http.proto")));
    // The control: Google's protos are needed.
    const without = 'protoc -I "$ARBOR/proto" --descriptor_set_out=all.binpb chainguard/platform/iam/v2/groups.proto';
    await assert.rejects(follow(without, cwd), /google\/api\/annotations\.proto: File not found/);
  });

  it("protoc writes stubs that Python imports", { skip: NO_PYTHON }, async () => {
    const { stdout } = await follow(`${blockOf(PAGE, "protoc")}\n${python("python")}`);
    assert.equal(stdout, "chainguard.platform.iam.v2.GroupsService\n");
  });

  it("buf generate writes stubs that Python imports, with Google's protos", { skip: NO_PYTHON }, async () => {
    const cwd = tempDir();
    symlinkSync(PROJECT, join(cwd, "arbor"));
    writeFileSync(join(cwd, "buf.gen.yaml"), blockOf(PAGE, "buf.gen.yaml"));
    const { stdout } = await follow(`${blockOf(PAGE, "buf")}\n${python("stubs")}`, cwd);
    assert.equal(stdout, "chainguard.platform.iam.v2.GroupsService\n");
    assert.ok(existsSync(join(cwd, "stubs/google/api/annotations_pb2.py")));
  });

  it("proto-loader needs two folders, and its client lists groups", async () => {
    const cwd = tempDir();
    symlinkSync(join(PROJECT, "node_modules"), join(cwd, "node_modules"));
    writeFileSync(join(cwd, "list.mjs"), blockOf(PAGE, "list.mjs"));
    const { stdout } = await follow(`'${process.execPath}' list.mjs`, cwd);
    assert.match(stdout, /^[0-9a-f/]+ production$/m);
  });
});

describe("reflection", () => {
  it("answers buf curl, which has no file of the API", async () => {
    const url = `${demo.url}/chainguard.platform.iam.v2.GroupsService/ListGroups`;
    const request = JSON.stringify({ uidp: { childrenOf: demo.variables.GROUP } });
    const flags = `--protocol grpc --http2-prior-knowledge -H "authorization: Bearer $TOKEN" -d '${request}'`;
    const { stdout } = await follow(`'${join(PROJECT, "node_modules/.bin/buf")}' curl ${flags} '${url}'`);
    assert.equal(JSON.parse(stdout).groups[0].name, "production");
  });

  it("answers grpcurl", { skip: NO_GRPCURL }, async () => {
    const cwd = tempDir();
    const program = `command -v grpcurl >/dev/null || (cd / && GOBIN='${cwd}' go install ${GRPCURL})`;
    const { stdout } = await follow(`${program}\nPATH=$PATH:'${cwd}'\n${blockOf(PAGE, "grpcurl")}`);
    assert.match(stdout, /^chainguard\.platform\.iam\.v2\.GroupsService$/m);
    assert.match(stdout, /rpc ListGroups/);
    assert.match(stdout, /"name": "production"/);
  });
});

describe("Go", { skip: NO_GO }, () => {
  // Not the published SDK, which cannot be had everywhere, but what makes the conflict: its name of a package, a path of its
  // own, and names that the protos here have as well.
  const SDK: Readonly<Record<string, string>> = {
    common: "message UIDPFilter { string ancestors_of = 1; }",
    annotations: "message IAM { bool unscoped = 1; }",
    capabilities: "enum Capability { UNKNOWN = 0; }",
    "chainguard/platform/iam/v2beta1":
      "message Identity { string uid = 1; }\nmessage IdentityProvider { message SCIM { bool enabled = 1; } }",
  };
  const main = (...imports: string[]) =>
    `package main\n\nimport (\n${imports.map((path) => `\t_ "${path}"`).join("\n")}\n)\n\nfunc main() {}\n`;
  let cwd: string;

  before(async () => {
    cwd = tempDir();
    mkdirSync(join(cwd, "published"));
    for (const [path, message] of Object.entries(SDK)) {
      const name = path.replaceAll("/", ".").replace("chainguard.", "");
      const pack = name === "common" ? "chainguard.platform.common" : `chainguard.${name}`;
      const text = `syntax = "proto3";\npackage ${pack};\noption go_package = "chainguard.dev/sdk/proto/${path}";\n${message}\n`;
      writeFileSync(join(cwd, `published/${name}.proto`), text);
    }
    const protoc = [
      'cp -r "$ARBOR"/examples/go/{go.mod,go.sum,stubs} .',
      "export GOBIN=$PWD/bin PATH=$PWD/bin:$PATH",
      "go install tool",
      'mkdir sdk; cp stubs/go.mod sdk/; sed -i "s#^module .*#module chainguard.dev/sdk#" sdk/go.mod',
      "go mod edit -require=chainguard.dev/sdk@v0.0.0 -replace=chainguard.dev/sdk=./sdk",
      "protoc -I published --go_out=sdk --go_opt=module=chainguard.dev/sdk published/*.proto",
      blockOf(PAGE, "sdk"),
      'protoc -I "$ARBOR/proto" --go_out=stubs --go_opt=module=arbor-platform chainguard/platform/common/uidp.proto',
    ];
    await follow(protoc.join("\n"), cwd);
  });

  const start = async (...imports: string[]) => {
    writeFileSync(join(cwd, "main.go"), main(...imports));
    return follow("go run -mod=mod .", cwd);
  };

  it("starts no program with the stubs and those of the SDK", async () => {
    await start("arbor-platform/gen/chainguard/platform/common");
    await start("chainguard.dev/sdk/proto/common");
    await assert.rejects(
      start("arbor-platform/gen/chainguard/platform/common", "chainguard.dev/sdk/proto/common"),
      /panic: proto: file "\S+" has a name conflict over chainguard\.platform\.common\.UIDPFilter/,
    );
  });

  it("starts a program with the SDK and stubs of proto/arbor that import it", async () => {
    const own = readdirSync(join(PROJECT, "proto/arbor")).map((name) => `arbor-platform/gen/arbor/${name}/v1`);
    await start("chainguard.dev/sdk/proto/common", ...own);
    assert.match(readFileSync(join(cwd, "stubs/gen/arbor/audit/v1/audit.pb.go"), "utf8"), /chainguard\.dev\/sdk/);
  });
});
