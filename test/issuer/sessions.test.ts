// SessionsService: callers see and end their own logins, and no others.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { SessionsService } from "#gen/arbor/sessions/v1/sessions_pb.js";
import { revokeTokens } from "../../src/iam/operator/operate.js";
import { buildCapabilitySet } from "../../src/iam/roles/capability-names.js";
import { createTokens, issueToken, type TokenGrant } from "../../src/issuer/tokens.js";
import { randomIds } from "../../src/kernel/ids.js";
import { rawClients, requestOf } from "../contract/iam-clients.js";
import { restAs } from "../contract/rest.js";
import { type Harness, startHarness } from "../support/harness.js";
import { ask, queryOf } from "./sts/ask.js";

const DAY_MS = 24 * 3_600_000;
const { listSessions, revokeSession } = SessionsService.method;

interface Session {
  readonly id: string;
  readonly createTime: string;
  readonly expireTime: string;
  readonly scopes?: readonly string[];
  readonly capabilities?: readonly string[];
}

let harness: Harness;
let root: string;
before(async () => {
  harness = await startHarness();
  root = (await harness.organisation("acme.example")).group;
});
after(() => harness.stop());

const nowMs = () => Date.now() + harness.skewMs;
const write = <T>(work: Parameters<typeof harness.app.installation.store.write<T>>[0]) =>
  harness.app.installation.store.write(work);

/** The first refresh token of a login. */
function logIn(identity: string, limit?: TokenGrant["limit"]): Promise<string> {
  const tokens = createTokens({ keys: harness.app.installation.keys, ids: randomIds, issuer: harness.url });
  return write((tx) => tokens.createRefreshToken(tx, identity, { audience: harness.url, limit }, nowMs()));
}

async function refresh(bearer: string): Promise<{ status: number; next: string }> {
  const path = `/sts/exchange_refresh_token?${queryOf({ aud: harness.url })}`;
  const { status, json } = await ask(harness.url, path, { method: "POST", bearer });
  return { status, next: (json as { refreshToken?: { token: string } }).refreshToken?.token ?? "" };
}

const rest = (token: string | undefined) => restAs(harness.url, token, "/sessions/v1");

async function list(token: string, query = ""): Promise<{ sessions: readonly Session[]; nextPageToken?: string }> {
  const { status, json, text } = await rest(token)("GET", `/sessions${query}`);
  assert.equal(status, 200, text);
  return { sessions: [], ...json };
}

async function later<T>(skewMs: number, work: () => Promise<T>): Promise<T> {
  harness.skewMs = skewMs;
  try {
    return await work();
  } finally {
    harness.skewMs = 0;
  }
}

describe("a list of sessions", () => {
  it("has one for each login that can go on, the newest first, with its limits", async () => {
    const { uid, token } = await harness.identity();
    assert.deepEqual(await list(token), { sessions: [] });
    const cap = buildCapabilitySet(["groups.list"]);
    await logIn(uid, { scope: [root], cap });
    let current = await later(5_000, () => logIn(uid));
    // Each renewal replaces the token, and the login is the same.
    for (let i = 0; i < 3; i++) current = (await refresh(current)).next;
    const { sessions } = await list(token);
    assert.equal(sessions.length, 2);
    const [newer, older] = sessions.map((one) => ({ ...one, ageMs: Date.now() - Date.parse(one.createTime) }));
    assert.ok(Number(newer?.ageMs) < 0 && Number(older?.ageMs) >= 0 && newer?.id !== older?.id);
    assert.deepEqual([older?.scopes, older?.capabilities], [[root], ["groups.list"]]);
    for (const { createTime, expireTime } of sessions)
      assert.equal(Date.parse(expireTime) - Date.parse(createTime), 30 * DAY_MS);
  });

  it("has a login once whose renewal was lost and repeated", async () => {
    const { uid, token } = await harness.identity();
    const first = await logIn(uid);
    await refresh(first);
    assert.equal((await refresh(first)).status, 200, "the repeat");
    assert.equal((await list(token)).sessions.length, 1);
  });

  it("has none that has expired, and none from before a revocation of all tokens", async () => {
    const { uid, token } = await harness.identity();
    await logIn(uid);
    assert.equal((await list(token)).sessions.length, 1);
    await later(31 * DAY_MS, async () => assert.deepEqual((await list(await harness.token(uid))).sessions, []));
    await write((tx) => revokeTokens(tx, uid, { ids: randomIds, nowMs: nowMs() }));
    assert.deepEqual((await list(await harness.token(uid))).sessions, []);
  });

  it("comes in pages, without gaps and twice none", async () => {
    const { uid, token } = await harness.identity();
    for (let i = 0; i < 5; i++) await later(i < 3 ? 0 : 1_000, () => logIn(uid));
    const ids: string[] = [];
    let pageToken = "";
    do {
      const page = await list(token, `?${queryOf({ page_size: "2", page_token: pageToken })}`);
      assert.ok(page.sessions.length <= 2);
      ids.push(...page.sessions.map(({ id }) => id));
      pageToken = page.nextPageToken ?? "";
    } while (pageToken !== "");
    assert.equal(new Set(ids).size, 5);
    assert.deepEqual(
      ids,
      (await list(token)).sessions.map(({ id }) => id),
    );
    // The token of a page belongs to its caller.
    const { nextPageToken = "" } = await list(token, "?page_size=2");
    const other = await harness.identity();
    const stolen = await rest(other.token)("GET", `/sessions?${queryOf({ page_token: nextPageToken })}`);
    assert.equal(stolen.status, 400, stolen.text);
    assert.equal((await rest(token)("GET", "/sessions?page_size=-1")).status, 400);
  });
});

describe("a session", () => {
  it("is ended by its owner: the refresh token is rejected, other logins go on, and the log has a row", async () => {
    const { uid, token } = await harness.identity();
    const ended = await logIn(uid);
    const [session] = (await list(token)).sessions;
    const other = await later(1_000, () => logIn(uid));
    const revoke = (id: string) => rest(token)("POST", `/sessions/${id}:revoke`, {});
    assert.equal((await revoke(session?.id ?? "")).status, 200);
    const [row] = await write((tx) => tx.audit.listNewest(1));
    assert.equal((await refresh(ended)).status, 401);
    assert.equal((await refresh(other)).status, 200);
    assert.equal((await list(token)).sessions.length, 1);
    assert.deepEqual(
      [row?.type, row?.subjectUid, row?.actorUid],
      ["arbor.sessions.v1.SessionsService.RevokeSession", uid, uid],
    );
    assert.equal((await revoke(session?.id ?? "")).status, 404, "a second time");
  });

  it("of somebody else looks like none, to an owner of the organisation as well, over every protocol", async () => {
    const { uid, token } = await harness.identity();
    await harness.bind(uid, "viewer", root);
    const kept = await logIn(uid);
    const [session] = (await list(token)).sessions;
    const id = session?.id ?? "";
    const owner = await harness.identity();
    await harness.bind(owner.uid, "owner", root);
    const clients = rawClients(harness.url);
    for (const client of clients) {
      const call = (request: string, bearer?: string) =>
        client.call(revokeSession, requestOf(revokeSession, { id: request }), bearer);
      const foreign = await call(id, owner.token);
      const missing = randomIds.newId();
      const absent = await call(missing, owner.token);
      assert.equal(foreign.code, "NOT_FOUND", client.name);
      // The details of other protocols hold the id in binary.
      if (client.name === "REST") {
        assert.equal(String(foreign.bytes).replaceAll(id, "ID"), String(absent.bytes).replaceAll(missing, "ID"));
      }
      // The path of REST has the id.
      const malformed = client.name === "REST" ? "NOT_FOUND" : "INVALID_ARGUMENT";
      assert.equal((await call("", owner.token)).code, malformed, client.name);
      assert.equal((await call(id)).code, "UNAUTHENTICATED", client.name);
      const { code } = await client.call(listSessions, requestOf(listSessions, {}), undefined);
      assert.equal(code, "UNAUTHENTICATED", client.name);
    }
    for (const client of clients) client.close();
    assert.deepEqual((await list(owner.token)).sessions, []);
    assert.equal((await refresh(kept)).status, 200);
  });

  it("is neither shown to a limited token nor ended by it", async () => {
    const { uid, token } = await harness.identity();
    const kept = await logIn(uid);
    const [session] = (await list(token)).sessions;
    const { keys } = harness.app.installation;
    for (const limit of [{ scope: [root] }, { cap: buildCapabilitySet(["groups.list"]) }]) {
      const request = { issuer: harness.url, audience: harness.url, identity: uid, limit, lifeS: 3600, atMs: nowMs() };
      const limited = await issueToken(request, keys, randomIds);
      assert.equal((await rest(limited)("GET", "/sessions")).status, 403);
      assert.equal((await rest(limited)("POST", `/sessions/${session?.id}:revoke`, {})).status, 403);
    }
    assert.equal((await refresh(kept)).status, 200);
  });
});
