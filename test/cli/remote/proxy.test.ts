// Commands behind a proxy, which they use where Node's own requests do.
import assert from "node:assert/strict";
import { createServer, request as send } from "node:http";
import { after, before, describe, it } from "node:test";
import { type Listener, listen } from "../../issuer/upstream/foreign-issuer.js";
import { execFile } from "../../support/child-process.js";
import { environmentWithoutSettings, scriptArguments } from "../../support/project.js";
import { type CliWorld, startCliWorld } from "./iam/cli-world.js";

const isSupported = process.allowedNodeEnvironmentFlags.has("--use-env-proxy");
let world: CliWorld;
let proxy: Listener;
let asked: string[] = [];

before(async () => {
  world = await startCliWorld();
  proxy = await listen(
    createServer((req, res) => {
      asked.push(req.url ?? "");
      const { hostname, port, pathname, search } = new URL(req.url ?? "");
      const options = { host: hostname, port, path: pathname + search, method: req.method, headers: req.headers };
      req.pipe(
        send(options, (answer) => {
          res.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(res);
        }),
      );
    }),
  );
});
after(async () => {
  await proxy?.close();
  await world?.stop();
});

const METHOD = "/chainguard.platform.iam.v2beta1.GroupsService/ListGroups";

describe("a command with NODE_USE_ENV_PROXY", {
  skip: !isSupported && "this Node uses no proxy for its requests",
}, () => {
  // In a process of its own: Node reads these variables when it starts.
  const list = async (given: Readonly<Record<string, string>>) => {
    const { url } = world.service;
    const variables = { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: proxy.origin, NO_PROXY: "", no_proxy: "", ...given };
    const env = { ...environmentWithoutSettings(), ARBOR_API: url, ARBOR_TOKEN: world.token, ...variables };
    const args = [...scriptArguments("src/main.ts"), "iam", "groups", "list"];
    return (await execFile(process.execPath, args, { env })).stdout;
  };

  it("calls through the proxy", async () => {
    asked = [];
    assert.match(await list({}), /acme\.example/);
    assert.deepEqual(asked, [`${world.service.url}${METHOD}`]);
  });

  it("does not where NO_PROXY has the host, and not without the variable", async () => {
    asked = [];
    for (const env of [{ NO_PROXY: "127.0.0.1" }, { NODE_USE_ENV_PROXY: "" }])
      assert.match(await list(env), /acme\.example/);
    assert.deepEqual(asked, []);
  });
});
