// Runs scim2-tester, a suite of others, against the endpoint. `npm run test:scim` installs it and runs this on both databases.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { startDirectory, type World } from "../scim/world.js";
import { spawn } from "../support/child-process.js";
import { PROJECT } from "../support/project.js";

const python = process.env.TEST_ARBOR_SCIM_PYTHON ?? "python3";

interface Check {
  readonly status: string;
  readonly title: string;
  readonly resource: string;
  readonly reason: string;
}

async function check(url: string, token: string): Promise<readonly Check[]> {
  const env = { PATH: process.env.PATH, SCIM_URL: url, SCIM_TOKEN: token };
  const child = spawn(python, ["-B", join(PROJECT, "test", "scim-tester", "check.py")], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 240_000,
  });
  assert.ok(child.stdout);
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const lines = (await text(child.stdout)).split("\n").filter(Boolean);
  assert.equal(await exited, 0);
  return lines.map((line) => JSON.parse(line) as Check);
}

const failures = (checks: readonly Check[]) => checks.filter(({ status }) => !["SUCCESS", "SKIPPED"].includes(status));

describe("scim2-tester", () => {
  let world: World;
  before(async () => {
    world = await startDirectory();
  });
  after(() => world.stop());

  it("finds no fault", async (t) => {
    const checks = await check(world.endpointUrl, world.token);
    assert.deepEqual(failures(checks), []);
    const successes = checks.filter(({ status }) => status === "SUCCESS").length;
    t.diagnostic(`${successes} checks succeeded`);
    assert.ok(successes > 100, `${successes}`);
  });

  it("control: finds an endpoint that forgets what it is sent", async () => {
    const proxy = createServer(async (request, response) => {
      const body = await new Response(request as unknown as ReadableStream).text();
      const { host: _, "content-length": __, ...headers } = request.headers as Record<string, string>;
      const answer = await fetch(`${world.harness.url}${request.url}`, {
        method: request.method ?? "GET",
        headers,
        ...(body !== "" && { body: body.replaceAll('"nickName"', '"forgotten"') }),
      });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      response.end(await answer.text());
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = proxy.address() as AddressInfo;
      const { pathname } = new URL(world.endpointUrl);
      const found = failures(await check(`http://127.0.0.1:${port}${pathname}`, world.token));
      assert.ok(found.length > 0);
      assert.ok(
        found.every(({ reason }) => /nickName|nick_name/i.test(reason)),
        JSON.stringify(found),
      );
    } finally {
      proxy.close();
    }
  });
});
