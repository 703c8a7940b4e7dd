// Unfinished logins are rows that unauthenticated callers create: each address has few, they are small, and a full limit
// rejects nobody.
import assert from "node:assert/strict";
import { Agent as HttpAgent, request } from "node:http";
import { after, before, describe, it } from "node:test";
import type { TicketKind } from "../../../src/store/tables/tokens.js";
import {
  Agent,
  codeRequest,
  type LoginKit,
  linksIn,
  newPkce,
  postForm,
  readHiddenFields,
  startLogin,
} from "./login-kit.js";

const MAX = 300;
const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";

let kit: LoginKit;
const connections = new HttpAgent({ keepAlive: true, maxSockets: 8 });
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

/** The unexpired tickets of a kind that count for an address. */
async function countUnfinished(kind: TicketKind, address: string): Promise<number> {
  let count = 0;
  for (;;) {
    const found = await kit.store.read((tx) => tx.tickets.findExcess(kind, `address ${address}`, count, Date.now()));
    count += found.length;
    if (found.length === 0) return count;
  }
}

const loginUrl = () => `/oauth?${new URLSearchParams(codeRequest(newPkce().challenge))}`;

/** Starts logins in browsers without a cookie, and leaves them. */
async function flood(count: number, more: Readonly<Record<string, string>> = {}) {
  const answered = await Promise.all(
    Array.from({ length: count }, () => from("127.0.0.1", loginUrl(), undefined, more)),
  );
  return new Set(answered.map(({ status, headers }) => `${status} ${new URL(String(headers.location)).pathname}`));
}

/** A login that is on its way to the provider, and how it goes on. */
async function begin(agent: Agent) {
  const provider = await agent.locationOf(kit.url + loginUrl());
  return async () => agent.decide(await agent.get(provider));
}

describe("more unfinished logins than an address may have", () => {
  it("reject no login, and store no more than the limit", async () => {
    assert.deepEqual([...(await flood(MAX + 10))], ["303 /auth"]);
    assert.ok((await countUnfinished("authorization", "127.0.0.1")) <= MAX + 20, "those of the same moment");
    const agent = new Agent();
    assert.ok((await agent.decide(await agent.get(kit.url + loginUrl()))).program?.get("code"));
    assert.ok((await countUnfinished("authorization", "127.0.0.1")) <= MAX);
  });

  it("replace those of new browsers first, and then the oldest", async () => {
    const [known, unknown] = [new Agent(), new Agent()];
    await known.get(`${kit.url}/activate`);
    const [goOn, isGone] = [await begin(known), await begin(unknown)];
    await flood(MAX + 20);
    assert.match((await isGone()).text, /<h1>This login is over<\/h1>/);
    assert.ok((await goOn()).program?.get("code"), "the browser that was here before");
    // All of the same browser: the oldest goes.
    const agent = new Agent();
    await agent.get(`${kit.url}/activate`);
    const oldest = await begin(agent);
    const [cookie] = [...(agent.jar.get(new URL(kit.url).host) ?? [])].map(([name, value]) => `${name}=${value}`);
    await flood(MAX + 20, { cookie: String(cookie) });
    const newest = await begin(agent);
    assert.match((await oldest()).text, /<h1>This login is over<\/h1>/);
    assert.ok((await newest()).program?.get("code"));
  });

  it("replace none in which the person has signed in at the provider", async () => {
    const forged = { cookie: `arbor-login=${"A".repeat(43)}` };
    const [agent, device] = [new Agent(), new Agent()];
    const page = await agent.get(kit.url + loginUrl());
    assert.equal(new URL(page.url).pathname, "/oauth/consent");
    const { body } = await postForm(`${kit.url}/oauth/device_authorization`, { client_id: "robot" });
    const code = await device.get(`${kit.url}/activate`);
    const user_code = String(body.user_code);
    const chosen = await device.post(`${kit.url}/activate`, { ...readHiddenFields(code.text), user_code });
    const approval = await device.get(linksIn(chosen)[0] ?? "");
    await flood(MAX + 40, forged);
    assert.ok((await agent.decide(page)).program?.get("code"));
    const approved = await device.post(`${kit.url}/activate`, {
      ...readHiddenFields(approval.text),
      decision: "approve",
    });
    assert.match(approved.text, /<h1>Approved<\/h1>/);
  });

  it("of one address replace none of another, nor of another kind", async () => {
    const goOn = await begin(new Agent());
    for (let i = 0; i < MAX + 10; i++) {
      await from("127.0.3.1", loginUrl());
      if (i % 3 === 0) await postForm(`${kit.url}/oauth/device_authorization`, { client_id: "robot" });
    }
    assert.ok((await goOn()).program?.get("code"));
    assert.ok((await countUnfinished("authorization", "127.0.3.1")) <= MAX);
  });
});

describe("devices", () => {
  const form = new URLSearchParams({ client_id: "robot" });
  const start = async (address: string) => {
    const { status, text } = await from(address, "/oauth/device_authorization", form);
    assert.equal(status, 200, text);
    return JSON.parse(text) as Record<"device_code" | "user_code", string>;
  };
  const poll = async ({ device_code }: { readonly device_code: string }) =>
    (await postForm(`${kit.url}/oauth/token`, { grant_type: DEVICE, client_id: "robot", device_code })).body;

  it("that nobody approves are replaced, but not one that somebody is approving", async () => {
    const [left, wanted] = [await start("127.0.3.2"), await start("127.0.3.2")];
    const agent = new Agent();
    const page = await agent.get(`${kit.url}/activate`);
    const chosen = await agent.post(`${kit.url}/activate`, {
      ...readHiddenFields(page.text),
      user_code: wanted.user_code,
    });
    for (let i = 0; i < MAX + 10; i++) await start("127.0.3.2");
    for (const kind of ["device", "user-code"] as const) assert.equal(await countUnfinished(kind, "127.0.3.2"), MAX);
    assert.equal((await poll(left)).error, "invalid_grant");
    const approval = await agent.get(linksIn(chosen)[0] ?? "");
    await agent.post(`${kit.url}/activate`, { ...readHiddenFields(approval.text), decision: "approve" });
    assert.ok((await poll(wanted)).access_token);
  });
});

describe("a request that is not for a page of its own", () => {
  const statusOf = async (dest: string) =>
    (await from("127.0.3.3", loginUrl(), undefined, { "sec-fetch-dest": dest })).status;

  it("starts no login", async () => {
    for (const dest of ["image", "iframe", "frame", "empty", "script", "object", "video", ""]) {
      assert.equal(await statusOf(dest), 403, dest);
    }
    assert.equal(await countUnfinished("authorization", "127.0.3.3"), 0);
    assert.equal(await statusOf("document"), 303, "the control");
    assert.equal((await from("127.0.3.3", loginUrl())).status, 303, "clients that do not say what it is for");
    assert.equal(await countUnfinished("authorization", "127.0.3.3"), 2);
  });
});

describe("an unfinished login", () => {
  it("stores no more than a request may need", async () => {
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
});
