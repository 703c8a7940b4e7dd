// Logins for terminals without a browser, with the terminal's side written anew.
import assert from "node:assert/strict";
import { get } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, beforeEach, describe, test } from "node:test";
import { takeHeadlessSession } from "../../../src/issuer/oauth/headless.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { bindingRow } from "../../support/rows.js";
import { Agent, alice, claimsOf, type LoginKit, linksIn, readHiddenFields, startLogin } from "./login-kit.js";
import { exchange, type LoginWorld, startLoginWorld } from "./login-world.js";
import { terminal } from "./terminal.js";

let kit: LoginKit;

before(async () => {
  kit = await startLogin();
});

beforeEach(() => {
  kit.provider.account = alice;
  kit.skewMs = 0;
});

after(() => kit?.stop());

function take(key: string, at = kit) {
  return at.store.write((tx) => takeHeadlessSession(tx, key, at.deps.clock()));
}

function begin(agent: Agent, key: string, more: Readonly<Record<string, string>> = {}, at = kit) {
  const query = new URLSearchParams({ headless_code: key, client_id: "arbor-cli", ...more });
  return agent.get(`${at.url}/oauth?${query}`);
}

function confirm(agent: Agent, page: string, code: string, at = kit) {
  return agent.post(`${at.url}/oauth`, { ...readHiddenFields(page), user_code: code });
}

async function logIn(key: string, code: string, more: Readonly<Record<string, string>> = {}, agent = new Agent()) {
  const page = await begin(agent, key, more);
  const confirmed = await confirm(agent, page.text, code);
  const [link = ""] = linksIn(confirmed);
  return { page, confirmed, done: await agent.get(link) };
}

test("the terminal gets the ID token of the provider, once", async () => {
  const { key, code, open } = terminal();
  assert.equal(await take(key), undefined);
  const requestCount = kit.provider.requests.length;
  const { page, confirmed, done } = await logIn(key, code);
  assert.match(page.text, /127\.0\.0\.1/);
  assert.match(page.text, /UTC/);
  assert.match(confirmed.text, /<h1>Code confirmed<\/h1>/);
  assert.match(done.text, /<h1>Signed in<\/h1>/);
  assert.ok(kit.provider.requests.length > requestCount);
  const session = await take(key);
  assert.ok(session);
  const claims = claimsOf(open(session));
  assert.deepEqual([claims.iss, claims.sub, claims.aud], [kit.provider.issuer, "alice", kit.provider.clientId]);
  assert.equal(await take(key), undefined);
});

test("the name of an organisation in which the person holds nothing is rejected, and the terminal waits", async () => {
  await kit.organisation("foreign.example");
  const { key, code } = terminal();
  const pages: string[] = [];
  for (const scope of ["foreign.example", "unknown.example"]) {
    const { done } = await logIn(key, code, { scope });
    assert.equal(done.status, 400);
    pages.push(done.text);
  }
  assert.equal(pages[0], pages[1]);
  assert.equal(await take(key), undefined);
  assert.match((await logIn(key, code)).done.text, /<h1>Signed in<\/h1>/);
});

test("a token of an organisation's provider comes with the uid of the provider", async () => {
  const { provider } = await kit.organisation("terminals.example");
  const { key, code, open } = terminal();
  await logIn(key, code, { idp_id: "terminals.example" });
  const session = await take(key);
  assert.ok(session);
  const { id_token, identity_provider, ...rest } = JSON.parse(open(session)) as Record<string, string>;
  assert.equal(identity_provider, provider);
  assert.equal(claimsOf(id_token).sub, "alice");
  assert.deepEqual(rest, {});
});

test("only the terminal can open the answer", async () => {
  const { key, code } = terminal();
  await logIn(key, code);
  const session = await take(key);
  assert.ok(session);
  assert.throws(() => terminal().open(session));
});

test("the browser is not sent to a provider before the code was typed", async () => {
  const { key } = terminal();
  const requestCount = kit.provider.requests.length;
  const page = await begin(new Agent(), key, { connection: "test" });
  assert.equal(page.status, 200);
  assert.equal(linksIn(page).length, 0);
  assert.equal(kit.provider.requests.length, requestCount);
});

test("a wrong code leads back to the page, the tenth locks the login everywhere", async () => {
  const locked = await startLogin();
  try {
    const { key, code } = terminal();
    const agent = new Agent();
    const page = await begin(agent, key, {}, locked);
    for (let i = 0; i < 10; i++) {
      const wrong = await confirm(agent, page.text, "AAAA-AAAA", locked);
      assert.equal(wrong.status, 400);
      assert.match(wrong.text, /That is not the code/);
    }
    const late = await confirm(agent, page.text, code, locked);
    assert.equal(late.status, 429);
    assert.match((await begin(new Agent(), key, {}, locked)).text, /<h1>This login is over<\/h1>/);
    const another = terminal();
    const other = await begin(agent, another.key, {}, locked);
    assert.match((await confirm(agent, other.text, another.code, locked)).text, /Code confirmed/);
  } finally {
    await locked.stop();
  }
});

test("a login that was answered cannot be answered again, taken or not", async () => {
  const { key, code } = terminal();
  const agent = new Agent();
  const page = await begin(agent, key);
  const [first, second] = [await confirm(agent, page.text, code), await confirm(agent, page.text, code)];
  await agent.get(linksIn(first)[0] ?? "");
  const again = await agent.get(linksIn(second)[0] ?? "");
  assert.match(again.text, /<h1>This login is over<\/h1>/);
  assert.ok(await take(key));
  assert.match((await begin(agent, key)).text, /<h1>This login is over<\/h1>/);
});

test("an answer waits ten minutes", async () => {
  const { key, code } = terminal();
  await logIn(key, code);
  kit.skewMs = 601_000;
  assert.equal(await take(key), undefined);
});

test("a confirmed login goes on in its own browser alone, and for ten minutes", async () => {
  const { key, code } = terminal();
  const agent = new Agent();
  const confirmed = await confirm(agent, (await begin(agent, key)).text, code);
  assert.match((await new Agent().get(confirmed.url)).text, /<h1>This login is over<\/h1>/);
  kit.skewMs = 601_000;
  assert.match((await agent.get(confirmed.url)).text, /<h1>This login is over<\/h1>/);
});

test("the form of another browser, or none, confirms nothing", async () => {
  const { key, code } = terminal();
  const { text } = await begin(new Agent(), key);
  const response = await confirm(new Agent(), text, code);
  assert.equal(response.status, 400);
  assert.match(response.text, /allow cookies/);
});

test("an unknown person gets an error page, and the terminal gets nothing", async () => {
  const invited = await startLogin(() => ({ registration: "invite" }));
  try {
    const { key, code } = terminal();
    const agent = new Agent();
    const confirmed = await confirm(agent, (await begin(agent, key, {}, invited)).text, code, invited);
    const done = await agent.get(linksIn(confirmed)[0] ?? "");
    assert.equal(done.status, 404);
    assert.match(done.text, /<h1>You have no account here<\/h1>/);
    assert.equal(await take(key, invited), undefined);
  } finally {
    await invited.stop();
  }
});

describe("a program that shows no code", () => {
  const SHOWS_NONE = [{ client_id: "auth0" }, { client_id: "" }];
  const confirmInWords = (agent: Agent, page: string, confirmation: string, at = kit) =>
    agent.post(`${at.url}/oauth`, { ...readHiddenFields(page), confirmation });
  const textOf = ({ text }: { text: string }) => text.replace(/<style>.*<\/style>|<[^>]+>/gs, " ").replace(/\s+/g, " ");

  for (const client of SHOWS_NONE) {
    const name = client.client_id === "" ? "without a client_id" : "with a client_id";
    test(`${name} gets the outcome after a confirmation in words`, async () => {
      const { key, open } = terminal();
      const agent = new Agent();
      const requestCount = kit.provider.requests.length;
      const page = await begin(agent, key, { ...client, connection: "test" });
      assert.match(page.text, /<h1>Give another computer access\?<\/h1>/);
      const shown = [
        `Program ${client.client_id || "unknown"} `,
        "in your name",
        "all of them",
        "Requested from unknown",
        "127.0.0.1",
      ];
      for (const text of shown) assert.ok(textOf(page).includes(text), text);
      for (const words of ["", "give", "yes", "give  access now", "AAAA-AAAA"]) {
        const wrong = await confirmInWords(agent, page.text, words);
        assert.equal(wrong.status, 400);
        assert.match(wrong.text, /Those are not the words/);
      }
      assert.equal(kit.provider.requests.length, requestCount, "the browser was sent to the provider");
      const confirmed = await confirmInWords(agent, page.text, " Give  ACCESS ");
      assert.match(confirmed.text, /<h1>Confirmed<\/h1>/);
      assert.match((await agent.get(linksIn(confirmed)[0] ?? "")).text, /<h1>Signed in<\/h1>/);
      const session = await take(key);
      assert.ok(session);
      assert.equal(claimsOf(open(session)).sub, "alice");
      assert.equal(await take(key), undefined);
      assert.match((await begin(agent, key, client)).text, /<h1>This login is over<\/h1>/);
    });
  }

  test("is not confirmed with words where the command line is asked for its code, nor the other way round", async () => {
    const { key, code } = terminal();
    const agent = new Agent();
    const ofCommandLine = await begin(agent, key);
    assert.equal((await confirmInWords(agent, ofCommandLine.text, "give access")).status, 400);
    const ofAnother = await begin(agent, key, { client_id: "auth0" });
    assert.equal((await confirm(agent, ofAnother.text, code)).status, 400);
    assert.equal(await take(key), undefined);
  });

  test("is confirmed in the browser that shows the page, with its form", async () => {
    const { key } = terminal();
    const { text } = await begin(new Agent(), key, { client_id: "auth0" });
    const response = await confirmInWords(new Agent(), text, "give access");
    assert.equal(response.status, 400);
    assert.match(response.text, /allow cookies/);
  });

  test("cannot name itself as it likes", async () => {
    const page = await begin(new Agent(), terminal().key, { client_id: "your bank <b>" });
    assert.equal(page.status, 400);
    assert.doesNotMatch(page.text, /your bank/);
  });

  test("is named on the page that asks about roles that others gave", async () => {
    kit.provider.account = { ...alice, subject: "bound" };
    const { group } = await kit.organisation("bindings.example");
    const uid = personUid(kit.provider.issuer, "bound");
    const binding = bindingRow(randomIds.newUid(group), uid, builtinRoleUid("viewer"), { pending: true });
    await kit.store.write((tx) => tx.table(roleBindingKind).insert(binding));
    const agent = new Agent();
    const page = await begin(agent, terminal().key, { client_id: "auth0" });
    const confirmed = await confirmInWords(agent, page.text, "give access");
    const consent = await agent.get(linksIn(confirmed)[0] ?? "");
    assert.match(textOf(consent), /Program auth0 on another computer/);
    assert.match((await agent.decide(consent)).text, /<h1>Signed in<\/h1>/);
  });

  test("is rejected where the operator says so, the command line is not", async () => {
    const strict = await startLogin(() => ({ headlessConfirmation: "code" }));
    try {
      const { key, code } = terminal();
      const agent = new Agent();
      for (const client of SHOWS_NONE) {
        const page = await begin(agent, key, client, strict);
        assert.deepEqual([page.status, linksIn(page).length], [400, 0]);
        assert.match(page.text, /programs that show a code, such as arbor auth login --headless/);
      }
      const page = await begin(agent, key, {}, strict);
      const form = { ...readHiddenFields(page.text), client_id: "auth0", confirmation: "give access" };
      const forged = await agent.post(`${strict.url}/oauth`, form);
      assert.equal(forged.status, 400);
      assert.match(forged.text, /programs that show a code/);
      assert.match((await confirm(agent, page.text, code, strict)).text, /Code confirmed/);
    } finally {
      await strict.stop();
    }
  });
});

describe("the page of a program that shows no code", () => {
  let world: LoginWorld;

  before(async () => {
    world = await startLoginWorld();
  });
  after(() => world?.stop());

  /** Polls for the outcome from this address. */
  function poll(key: string, localAddress: string, headers: Readonly<Record<string, string>> = {}): Promise<Polled> {
    const { hostname, port } = new URL(world.harness.url);
    const path = `/sts/headless_sessions?${new URLSearchParams({ code: key })}`;
    return new Promise((resolve, reject) => {
      const request = get({ hostname, port, path, localAddress, headers, agent: false }, (response) => {
        text(response).then((body) => resolve({ status: response.statusCode, body: JSON.parse(body) }), reject);
      });
      request.on("error", reject);
    });
  }

  const findAddress = async (key: string, agent = new Agent()) => {
    const page = await agent.get(`${world.harness.url}/oauth?headless_code=${key}`);
    const [, rows = ""] = /<dt>Requested from<\/dt><dd>(.*?)<\/dd>/s.exec(page.text) ?? [];
    return { page, from: rows };
  };

  test("shows from where it was asked, and the login is one from end to end", async () => {
    const { key, open } = terminal();
    assert.match((await findAddress(key)).from, /^unknown/);
    assert.equal((await poll(key, "127.0.0.2")).status, 404);
    const agent = new Agent();
    const { page, from } = await findAddress(key, agent);
    assert.equal(from, "127.0.0.2");
    const form = { ...readHiddenFields(page.text), confirmation: "give access" };
    const confirmed = await agent.post(`${world.harness.url}/oauth`, form);
    await agent.get(linksIn(confirmed)[0] ?? "");
    const { status, body } = await poll(key, "127.0.0.2");
    assert.equal(status, 200);
    const [ecdhPublicKey, encryptedIdtoken] = [body.ecdhPublicKey, body.encryptedIdtoken].map((value) =>
      Buffer.from(String(value), "base64"),
    );
    assert.ok(ecdhPublicKey && encryptedIdtoken);
    const exchanged = await exchange(world.harness.url, open({ ecdhPublicKey, encryptedIdtoken }));
    assert.equal(claimsOf(exchanged.json.token).sub, personUid(world.provider.issuer, "alice"));
  });

  test("shows all addresses up to a limit, and none that another site made the person's browser ask from", async () => {
    const { key } = terminal();
    await poll(key, "127.0.0.1", { "sec-fetch-site": "cross-site" });
    assert.match((await findAddress(key)).from, /^unknown/);
    for (const last of [2, 3, 3, 4, 5, 6, 7]) await poll(key, `127.0.0.${last}`);
    assert.equal((await findAddress(key)).from, "127.0.0.2, 127.0.0.3, 127.0.0.4, 127.0.0.5");
    assert.equal((await poll("x", "127.0.0.2")).status, 404);
  });
});

interface Polled {
  readonly status: number | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

const wrongKeys: readonly (readonly [string, string])[] = [
  ["31 bytes", Buffer.alloc(31, 1).toString("base64url")],
  ["33 bytes", Buffer.alloc(33, 1).toString("base64url")],
  ["another alphabet", Buffer.alloc(32, 255).toString("base64")],
  ["stray bits at the end", `${"A".repeat(42)}B`],
  ["a point of low order: 0", Buffer.alloc(32).toString("base64url")],
  ["a point of low order: 1", Buffer.from([1, ...Array(31).fill(0)]).toString("base64url")],
  ["markup", "<script>"],
];

for (const [name, key] of wrongKeys) {
  test(`a key of ${name} is rejected`, async () => {
    const page = await begin(new Agent(), key);
    assert.equal(page.status, 400);
    assert.match(page.text, /headless_code must be/);
    assert.doesNotMatch(page.text, /<script>/);
  });
}
