// The example of docs/gateway.md, as it stands there, in a program of its own that imports the package by its name.
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Code, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { transformSync } from "esbuild";
import { spawn } from "../support/child-process.js";
import { runCommand } from "../support/command.js";
import { docsExample } from "../support/docs-example.js";
import { LibraryService } from "../support/library/library_pb.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const protocols: Readonly<Record<string, (baseUrl: string) => Transport>> = {
  grpc: (baseUrl) => createGrpcTransport({ baseUrl }),
  "grpc-web": (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  connect: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }),
};

describe("the example of docs/gateway.md", () => {
  const env = { ARBOR_LISTEN: "127.0.0.1:0", ARBOR_DATA: join(tempDir(), "data"), ARBOR_TOKEN_ALGORITHM: "ES256" };
  let program: ChildProcess;
  let ended: Promise<unknown[]>;
  let url: string;
  let group: string;
  let headers: { readonly authorization: string };

  before(async () => {
    const settings = { ...env, ARBOR_ACCESS_LOG: "false" };
    program = spawn(process.execPath, [writeProgram()], { env: { ...environmentWithoutSettings(), ...settings } });
    ended = once(program, "close");
    let errors = "";
    program.stderr?.on("data", (chunk) => {
      errors += chunk;
    });
    const printed = once(program.stdout as NodeJS.ReadableStream, "data");
    const [line] = await Promise.race([printed, ended.then(() => [errors])]);
    url = /^listening on (\S+)\n$/.exec(String(line))?.[1] ?? "";
    assert.notEqual(url, "", String(line));
    const { stdout } = await runCommand(["bootstrap", "--org", "acme.example", "--json"], env);
    const made = JSON.parse(stdout) as { group: string; token: string };
    group = made.group;
    headers = { authorization: `Bearer ${made.token}` };
  });
  after(() => program?.kill("SIGKILL"));

  for (const [protocol, transportTo] of Object.entries(protocols)) {
    test(`answers over ${protocol}`, async () => {
      const client = createClient(LibraryService, transportTo(url));
      assert.equal((await client.getBook({ name: "books/dune" })).title, "Dune");
      await assert.rejects(client.getBook({ name: "books/x" }), {
        code: Code.NotFound,
        rawMessage: /no book books\/x/,
      });
      await assert.rejects(client.createBook({ book: { title: "Emma" } }), { code: Code.Unauthenticated });
      const { title } = await client.createBook({ book: { title: "Emma" } }, { headers });
      assert.match(title, /^Emma, added by [0-9a-f]+/);
      const names: string[] = [];
      for await (const { name } of client.listBooks({ group, count: 2 }, { headers })) names.push(name);
      assert.deepEqual(names, ["books/1", "books/2"]);
      const elsewhere = client.listBooks({ group: "0".repeat(40), count: 2 }, { headers });
      await assert.rejects(
        async () => {
          for await (const _ of elsewhere);
        },
        { code: Code.PermissionDenied, rawMessage: /groups\.list at 0{40}/ },
      );
      await assert.rejects(client.deleteBook({ name: "books/x" }, { headers }), { code: Code.Unimplemented });
    });
  }

  test("answers as JSON over HTTP", async () => {
    const send = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(url + path, init);
      return [response.status, await response.text()];
    };
    assert.deepEqual(await send("/library/v1/books/dune"), [200, '{"name":"books/dune","title":"Dune"}']);
    const missing = '{"code":5,"message":"there is no book books/x","details":[]}';
    assert.deepEqual(await send("/library/v1/books/x"), [404, missing]);
    const post = { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: "{}" };
    assert.equal((await send("/library/v1/books", post))[0], 200);
    assert.equal((await send("/library/v1/books", { ...post, headers: {} }))[0], 401);
    const [status, lines] = await send(`/library/v1/groups/${group}/books?count=1`, { headers });
    assert.deepEqual([status, lines], [200, `{"result":{"name":"books/1","title":"","group":"${group}"}}\n`]);
  });

  test("serves the platform as well", async () => {
    assert.equal((await fetch(`${url}/iam/v2beta1/groups/${group}`, { headers })).status, 200);
  });

  test("stops when it is told to", async () => {
    program.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
  });
});

// A project with the package as it would be installed: its package.json, and this tree in place of its dist/.
function writeProgram(): string {
  const project = tempDir();
  const [main = ""] = scriptArguments("src/main.ts").slice(-1);
  const installed = join(project, "node_modules", "arbor-platform");
  mkdirSync(installed, { recursive: true });
  for (const name of ["package.json", "gen"]) symlinkSync(join(PROJECT, name), join(installed, name));
  symlinkSync(dirname(main), join(installed, "dist"));
  for (const scope of ["@connectrpc", "@bufbuild"]) {
    symlinkSync(join(PROJECT, "node_modules", scope), join(project, "node_modules", scope));
  }
  writeFileSync(join(project, "package.json"), '{"type":"module"}');
  cpSync(join(PROJECT, "test/support/library/library_pb.js"), join(project, "library_pb.js"));
  const { code } = transformSync(docsExample("gateway.md", "Mounting another Connect service"), { loader: "ts" });
  writeFileSync(join(project, "server.js"), code);
  return join(project, "server.js");
}
