// `arbor api`: every method that a running service serves is reachable, which is asked of the service itself.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { type DescMethod, type DescMethodUnary, type DescService, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { parse } from "yaml";
import { ServerReflection } from "#gen/grpc/reflection/v1/reflection_pb.js";
import { createProgram } from "../../../../src/cli/program.js";
import { readMethods } from "../../../../src/cli/remote/api/catalogue.js";
import { findCommands } from "../../../../src/cli/remote/api/run.js";
import { formatMethod, getMethods } from "../../../../src/cli/remote/methods.js";
import { mount } from "../../../../src/pipeline/mount.js";
import { isUnavailable } from "../../../contract/iam-methods.js";
import { type Host, startHost } from "../../../e2e/process.js";
import { spawn } from "../../../support/child-process.js";
import { type Harness, startHarness } from "../../../support/harness.js";
import { LibraryService } from "../../../support/library/library_pb.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../../support/project.js";
import { tempDir } from "../../../support/temp-dir.js";

/** Services that only exist to describe others; their methods read streams. */
const REFLECTION = /^grpc\.reflection\./;

let service: Harness;
let host: Host;
let root: string;
let environment: Record<string, string>;
before(async () => {
  service = await startHarness();
  const { group, token } = await service.organisation("acme.example");
  root = group;
  const home = tempDir();
  environment = { HOME: home, XDG_CONFIG_HOME: home, ARBOR_API: service.url, ARBOR_TOKEN: token };
  host = startHost();
});
after(async () => {
  host?.close();
  await service?.stop();
});

const api = (...args: readonly string[]) => host.run(["api", ...args], environment);

/** Asks a service which methods it serves. */
async function listServed(url: string): Promise<string[]> {
  const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: url }));
  const ask = async (request: { case: "listServices" | "fileContainingSymbol"; value: string }) => {
    for await (const { messageResponse } of client.serverReflectionInfo(
      (async function* () {
        yield { messageRequest: request };
      })(),
    )) {
      return messageResponse;
    }
    throw new Error("no response");
  };
  const listed = await ask({ case: "listServices", value: "" });
  assert.equal(listed.case, "listServicesResponse");
  const names = listed.value.service.map(({ name }) => name).filter((name) => !REFLECTION.test(name));
  const methods: string[] = [];
  for (const name of names) {
    const described = await ask({ case: "fileContainingSymbol", value: name });
    assert.equal(described.case, "fileDescriptorResponse", name);
    const [file] = described.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
    const found = file?.service.find((one) => `${file.package}.${one.name}` === name);
    assert.ok(found, name);
    methods.push(...found.method.map((method) => `${name}/${method.name}`));
  }
  return methods.sort();
}

const listCallable = () => new Set(readMethods().map(formatMethod));

describe("every served method", () => {
  it("is one that `arbor api call` calls, and no other is", async () => {
    const served = await listServed(service.url);
    assert.ok(served.length > 200);
    assert.deepEqual([...listCallable()].sort(), served);
  });

  it("is missed where no command calls it", async () => {
    const planted = await startHarness({}, { mounts: [mount(LibraryService, {}, { access: "public" })] });
    try {
      const callable = listCallable();
      const missing = (await listServed(planted.url)).filter((method) => !callable.has(method));
      assert.deepEqual(missing, LibraryService.methods.map(formatMethod).sort());
    } finally {
      await planted.stop();
    }
  });

  it("has a command of its own, but for those that are listed here", async () => {
    const methods = readMethods();
    const commands = findCommands(await createProgram(), methods);
    const unavailable = new Set(methods.filter(isUnary).filter(isUnavailable).map(formatMethod));
    const without = methods.map(formatMethod).filter((method) => !commands.has(method));
    assert.deepEqual(
      without.filter((method) => !isReplaced(method) && !unavailable.has(method)),
      withoutCommand,
    );
  });

  it("is what a command says that it calls", async () => {
    const known = listCallable();
    const named: string[] = [];
    const collect = (command: Awaited<ReturnType<typeof createProgram>>): void => {
      named.push(...getMethods(command));
      command.commands.forEach(collect);
    };
    collect(await createProgram());
    assert.ok(named.length > 80);
    assert.deepEqual(
      named.filter((method) => !known.has(method)),
      [],
    );
  });
});

// The commands call the newest version of each method. These methods of version 1 are in version 2.
const replacedServices =
  /^chainguard\.platform\.(iam|events|ping)\.[A-Z]\w+\/|^chainguard\.platform\.vulnerabilities\.v1\.Advisories\/List$/;
const replacedInRegistry =
  /\.Registry\/((Create|Update|List|Delete)Repos?|(Create|List|Delete)Tags?|GetArchs|GetSize)$/;
const isUnary = (method: DescMethod): method is DescMethodUnary => method.methodKind === "unary";
const isReplaced = (method: string) => replacedServices.test(method) || replacedInRegistry.test(method);

/** The methods without a command of their own that do something: what programs call, and what people do in a browser. */
const withoutCommand = [
  "chainguard.platform.auth.Auth/Delete",
  "chainguard.platform.auth.Auth/Register",
  "chainguard.platform.ping.v2.PingService/Ping",
  "chainguard.platform.ping.v2beta1.PingService/Ping",
  "grpc.health.v1.Health/Check",
  "grpc.health.v1.Health/List",
  "grpc.health.v1.Health/Watch",
];

describe("arbor api call", () => {
  const file = (content: string) => {
    const path = join(tempDir(), "request");
    writeFileSync(path, content);
    return path;
  };

  it("sends every method to the service, and prints its response or its error", async () => {
    // An empty request changes nothing: what a method needs is missing.
    const unary = readMethods()
      .filter(isUnary)
      .filter(({ parent }) => !isBeta(parent));
    for (const method of unary) {
      const name = formatMethod(method);
      const { code, stdout, stderr } = await api("call", name);
      if (code === 0) assert.equal(typeof JSON.parse(stdout), "object", name);
      else {
        assert.match(stderr, /^arbor: /, name);
        // An unknown method would be UNIMPLEMENTED too, which has the exit code 1.
        const codes = isUnavailable(method) ? [1, 2, 4] : [2, 3, 4, 5, 6];
        assert.ok(codes.includes(code ?? -1), `${name}: ${code} ${stderr}`);
      }
    }
  });

  it("reads the request from a file as JSON or YAML, and prints what REST answers", async () => {
    const json = file(JSON.stringify({ parent: root, group: { name: "team" } }));
    const made = await api("call", "v2.GroupsService/CreateGroup", "-f", json);
    assert.equal(made.code, 0, made.stderr);
    const group = JSON.parse(made.stdout) as { uid: string; name: string };
    assert.equal(group.name, "team");
    const yaml = file(`uidp: {childrenOf: ${root}}\nname: team\n`);
    const listed = await api(
      "call",
      "chainguard.platform.iam.v2beta1.GroupsService.ListGroups",
      "-f",
      yaml,
      "-o",
      "yaml",
    );
    assert.equal(listed.code, 0, listed.stderr);
    assert.equal((parse(listed.stdout) as { groups: unknown[] }).groups.length, 1);
    const old = await api("call", "iam.Groups/List", "-o", "jsonl");
    assert.equal(old.code, 0, old.stderr);
    assert.match(old.stdout, /^\{"items":\[.*\]\}\n$/);
  });

  it("prints a line for each response of a stream, until it is interrupted", async () => {
    const request = file('{"service": "chainguard.platform.iam.v2.GroupsService"}');
    const args = [...scriptArguments("src/main.ts"), "api", "call", "Health/Watch", "-f", request];
    const child = spawn(process.execPath, args, {
      cwd: PROJECT,
      env: { ...environmentWithoutSettings(), ...environment },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      assert.ok(child.stdout);
      const [line] = (await once(createInterface(child.stdout), "line")) as [string];
      assert.deepEqual(JSON.parse(line), { status: "SERVING" });
    } finally {
      child.kill("SIGINT");
      await once(child, "close");
    }
  });

  const rejected: readonly (readonly [args: readonly string[], error: RegExp])[] = [
    [["NoService/List"], /there is no method NoService\/List: see `arbor api list`/],
    [["sService/ListGroups"], /there is no method sService\/ListGroups/],
    [["Create"], /Create is the end of several names: .*chainguard\.platform\.iam\.Groups\/Create/],
    [["GroupsService/GetGroup", "-f", "/nowhere/at/all"], /--file: cannot read \/nowhere\/at\/all: no such file/],
    [["GroupsService/GetGroup", "-o", "table"], /Allowed choices are json, jsonl, yaml/],
  ];
  for (const [args, error] of rejected) {
    it(`rejects ${args.join(" ")}`, async () => {
      const { code, stdout, stderr } = await api("call", ...args);
      assert.equal(code, 2);
      assert.equal(stdout, "");
      assert.match(stderr, error);
    });
  }

  it("names a field that is unknown, and a method that the rules refuse", async () => {
    const unknown = await api("call", "GroupsService/GetGroup", "-f", file('{"uidd": "a"}'));
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /uidd/);
    const absent = await api(
      "call",
      "GroupsService/GetGroup",
      "-f",
      file(JSON.stringify({ uid: `${"0".repeat(40)}` })),
    );
    assert.ok([4, 5].includes(absent.code ?? 0), absent.stderr);
  });
});

describe("arbor api list", () => {
  it("prints the methods that contain a text, with their commands in both versions", async () => {
    const { code, stdout, stderr } = await api("list", "rolesservice/list");
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      stdout
        .trim()
        .split("\n")
        .map((line) => line.split(/ {2,}/)),
      [
        ["METHOD", "COMMAND"],
        ["chainguard.platform.iam.v2.RolesService/ListRoles", "arbor iam roles list"],
        ["chainguard.platform.iam.v2beta1.RolesService/ListRoles", "arbor iam roles list"],
      ],
    );
  });

  it("says which methods the service does not offer, and why; no command calls one of them", async () => {
    const { stdout } = await api("list", "GetSbom");
    assert.match(
      stdout,
      /\nchainguard\.platform\.registry\.Registry\/GetSbom +not offered: no bills of materials are /,
    );
    const all = JSON.parse((await api("list", "-o", "json")).stdout) as {
      methods: { method: string; command: string; notOffered?: string }[];
    };
    const closed = all.methods.filter(({ notOffered }) => notOffered !== undefined);
    assert.ok(closed.length > 25, `${closed.length}`);
    for (const { method, command } of closed) assert.equal(command, "", method);
  });

  it("prints all methods as JSON, without a service", async () => {
    const { code, stdout } = await host.run(["api", "list", "-o", "json"], { HOME: tempDir() });
    assert.equal(code, 0);
    const { methods } = JSON.parse(stdout) as { methods: { method: string; command: string }[] };
    assert.deepEqual(new Set(methods.map(({ method }) => method)), listCallable());
    assert.equal(methods.find(({ method }) => method === "chainguard.platform.iam.Groups/List")?.command, "");
  });
});

const isBeta = ({ typeName }: DescService) => typeName.includes(".v2beta1.");
