// Unfinished logins are rows that unauthenticated callers create: each address may have few, and they are small.
import assert from "node:assert/strict";
import { Agent as HttpAgent, request } from "node:http";
import { after, before, describe, it } from "node:test";
import { Code } from "@connectrpc/connect";
import { createStartLimit } from "../../../src/issuer/oauth/start-limit.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { Agent, codeRequest, type LoginKit, newPkce, readHiddenFields, startLogin } from "./login-kit.js";

const MAX = 300;
const WINDOW_MS = 600_000;

describe("the limit of unfinished logins", () => {
  const startAll = (limit: ReturnType<typeof createStartLimit>, address: string, count: number) => {
    for (let i = 0; i < count; i++) limit.start(address, {});
  };
  const isExhausted = (error: unknown) => error instanceof ApiError && error.code === Code.ResourceExhausted;

  it("is one for each address, and for each network of IPv6", () => {
    const limit = createStartLimit(() => 0);
    startAll(limit, "192.0.2.1", MAX);
    assert.throws(() => limit.start("192.0.2.1", {}), isExhausted);
    limit.start("192.0.2.2", {});
    for (let i = 0; i < MAX; i++) limit.start(`2001:db8::${i.toString(16)}`, {});
    assert.throws(() => limit.start("2001:db8::ffff:1", {}), isExhausted);
    limit.start("2001:db8:0:1::1", {});
  });

  it("ends after ten minutes, also when the clock is set back", () => {
    let nowMs = 1_000_000;
    const limit = createStartLimit(() => nowMs);
    startAll(limit, "192.0.2.1", MAX);
    nowMs += WINDOW_MS - 1;
    assert.throws(() => limit.start("192.0.2.1", {}), isExhausted);
    nowMs += 1;
    startAll(limit, "192.0.2.1", MAX);
    nowMs = 0;
    limit.start("192.0.2.1", {});
  });

  it("does not count logins that were finished", () => {
    const limit = createStartLimit(() => 0);
    for (let i = 0; i < 2 * MAX; i++) {
      limit.start("192.0.2.1", {});
      limit.finish("192.0.2.1");
    }
    limit.finish("192.0.2.9");
    startAll(limit, "192.0.2.1", MAX);
    assert.throws(() => limit.start("192.0.2.1", {}), isExhausted);
  });
});

describe("the endpoints that begin logins", () => {
  let kit: LoginKit;
  const connections = new HttpAgent({ keepAlive: true });
  before(async () => {
    kit = await startLogin();
  });
  after(() => {
    connections.destroy();
    return kit?.stop();
  });

  /** Asks from an address of this machine; the status, and the JSON if it is that. */
  function from(
    localAddress: string,
    path: string,
    form?: URLSearchParams,
    more: Readonly<Record<string, string>> = {},
  ): Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; text: string }> {
    return new Promise((resolve, reject) => {
      const type = { "content-type": "application/x-www-form-urlencoded" };
      const headers = { ...(form && type), ...more };
      const options = { method: form ? "POST" : "GET", localAddress, agent: connections, headers };
      const req = request(`${kit.url}${path}`, options, (res) => {
        let text = "";
        res.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk;
        });
        res.on("end", () => resolve({ status: res.statusCode ?? 0, headers: res.headers, text }));
      });
      req.on("error", reject).end(form?.toString());
    });
  }

  it("reject an address with too many pending devices, and no other address", { timeout: 60_000 }, async () => {
    const form = new URLSearchParams({ client_id: "robot" });
    const ask = (address: string) => from(address, "/oauth/device_authorization", form);
    for (let i = 0; i < MAX; i++) assert.equal((await ask("127.0.3.1")).status, 200, `request ${i}`);
    const { status, headers, text } = await ask("127.0.3.1");
    assert.deepEqual([status, JSON.parse(text).error], [429, "temporarily_unavailable"]);
    assert.ok(Number(headers["retry-after"]) > 500);
    assert.equal((await ask("127.0.3.2")).status, 200);
    const login = `/oauth?${new URLSearchParams(codeRequest(newPkce().challenge))}`;
    const other = await from("127.0.3.1", login);
    assert.match(String(other.headers.location), /error=temporarily_unavailable/);
    assert.match(String((await from("127.0.3.2", login)).headers.location), /^http:.*\/auth\?/);
  });

  it("store no more than a request may need", async () => {
    const caps = Array.from({ length: 600 }, () => "groups.list").join(" ");
    const device = new URLSearchParams({ client_id: "robot", cap: caps });
    const { status, text } = await from("127.0.3.3", "/oauth/device_authorization", device);
    assert.deepEqual([status, JSON.parse(text).error], [400, "invalid_request"]);
    assert.match(text, /at most 8192 characters/);
    const login = codeRequest(newPkce().challenge, { invite: "x".repeat(9_000) });
    const { program } = await new Agent().get(`${kit.url}/oauth?${new URLSearchParams(login)}`);
    assert.equal(program?.get("error"), "invalid_request");
    const half = new URLSearchParams({ client_id: "robot", cap: caps.slice(0, caps.length / 2).trim() });
    assert.equal((await from("127.0.3.3", "/oauth/device_authorization", half)).status, 200, "the control");
  });

  it("count each time that a device's code is typed", async () => {
    const form = new URLSearchParams({ client_id: "robot" });
    const { user_code: userCode } = JSON.parse((await from("127.0.3.4", "/oauth/device_authorization", form)).text);
    const agent = new Agent();
    const page = await agent.get(`${kit.url}/activate`);
    const fields = { ...readHiddenFields(page.text), user_code: String(userCode) };
    const cookies = agent.jar.get(new URL(kit.url).host) ?? new Map<string, string>();
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const type = () => from("127.0.3.5", "/activate", new URLSearchParams(fields), { cookie });
    const statuses = new Set<number>();
    for (let i = 0; i <= MAX; i++) statuses.add((await type()).status);
    assert.deepEqual([...statuses], [303, 429], "it leads on to the login until it is rejected");
  });
});
