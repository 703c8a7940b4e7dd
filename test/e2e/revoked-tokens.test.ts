// Revocations on SQLite with two workers: by a call at one of them, and by a command on the host. Each worker has verified the
// token before, and keeps that in memory.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { newDataDir } from "../support/data-dir.js";
import { workersOf } from "../support/workers.js";
import { type Host, type Organisation, type Service, startHost, startService } from "./process.js";

/** Connections, one for each call, so that both workers answer. */
const CALLS = 16;

const data = newDataDir();
let host: Host;
let made: Organisation;
let service: Service;
before(async () => {
  host = startHost();
  made = await host.bootstrap(data, "workers.example");
  service = await startService(data, "--workers", "2", "--metrics-listen", "off", "--access-log", "off");
});
after(async () => {
  service?.signal("SIGKILL");
  await service?.ended;
  host.close();
});

async function call(path: string, token: string, body?: object): Promise<{ status: number; json: { uid?: string } }> {
  const response = await fetch(service.url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, connection: "close", "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as { uid?: string } };
}

async function statusesOf(token: string): Promise<Set<number>> {
  const calls = Array.from({ length: CALLS }, () => call("/auth/v1/ok", token));
  return new Set((await Promise.all(calls)).map(({ status }) => status));
}

async function newToken(identity: string): Promise<string> {
  const args = ["admin", "token", "--identity", identity, "--data", data, "--audience", service.url];
  const { code, stdout, stderr } = await host.run(args);
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

test("what one worker has revoked every worker refuses", async () => {
  assert.equal(workersOf(service.pid).length, 2);
  const owner = await newToken(made.identity);
  const claimMatch = { issuer: "https://issuer.example", subject: "ci" };
  const { json } = await call(`/iam/v2beta1/identities/${made.group}`, owner, { name: "ci", claimMatch });
  const uid = String(json.uid);
  const [one, other] = [await newToken(uid), await newToken(uid)];
  for (const token of [one, other]) assert.deepEqual(await statusesOf(token), new Set([200]));
  const { jti } = JSON.parse(Buffer.from(one.split(".")[1] ?? "", "base64url").toString()) as { jti: string };
  const path = `/tokens/v1/identities/${uid}:revokeTokens`;
  assert.equal((await call(path, owner, { tokenId: jti })).status, 200);
  assert.deepEqual(await statusesOf(one), new Set([401]));
  assert.deepEqual(await statusesOf(other), new Set([200]));
  assert.equal((await call(path, owner, {})).status, 200);
  assert.deepEqual(await statusesOf(other), new Set([401]));
  // A token that the host issues in the same second is valid.
  assert.deepEqual(await statusesOf(await newToken(uid)), new Set([200]));
  const last = await newToken(uid);
  assert.equal((await host.run(["admin", "identities", "revoke", uid, "--yes", "--data", data])).code, 0);
  assert.deepEqual(await statusesOf(last), new Set([401]));
});
