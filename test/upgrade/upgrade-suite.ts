// What the current service must do with the database of an earlier version, on either store.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Host, startHost } from "../e2e/process.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type Expected, FIXTURE_BASE_URL, findDifferences } from "./fixtures.js";

/** The settings for a restored database. */
export type DatabaseSettings =
  | Readonly<Record<"data", string>>
  | Readonly<Record<"databaseUrl" | "masterKeyFile", string>>;

/** Sends all recorded requests to a running service and returns the responses that are missing or different. */
export async function compareResponses(
  harness: Harness,
  identity: string,
  responses: Expected["answers"],
): Promise<string[]> {
  const token = await harness.token(identity);
  const found: string[] = [];
  for (const [path, expected] of Object.entries(responses)) {
    const { status, body } = await request(harness, token, "GET", path);
    if (status !== 200) found.push(`GET ${path}: ${status} ${JSON.stringify(body)}`);
    else found.push(...findDifferences(expected, body).map((difference) => `GET ${path} ${difference}`));
  }
  return found;
}

/** Starts the current service on a restored database. */
export function startUpgraded(settings: DatabaseSettings): Promise<Harness> {
  return startHarness({ ...settings, baseUrl: FIXTURE_BASE_URL, tokenAlgorithm: "RS256" });
}

/**
 * Declares the tests of one version on one store.
 *
 * @param restore creates a copy of the database of that version
 */
export function upgradeSuite(version: string, expected: Expected, restore: () => Promise<DatabaseSettings>): void {
  describe(`the database of version ${version}`, () => {
    let settings: DatabaseSettings;
    let host: Host;
    let harness: Harness;
    before(async () => {
      settings = await restore();
      host = startHost();
      harness = await startUpgraded(settings);
    });
    after(async () => {
      host.close();
      await harness.stop();
    });

    it("gives the same answers as before", async () => {
      assert.ok(Object.keys(expected.answers).length > 40, "there are answers to compare");
      assert.deepEqual(await compareResponses(harness, expected.owner, expected.answers), []);
    });

    it("gives the same answers to identities of another organisation", async () => {
      assert.deepEqual(await compareResponses(harness, expected.guest, expected.guestAnswers), []);
    });

    it("continues lists from page tokens of that version", async () => {
      const { pageTokens } = expected;
      assert.ok(pageTokens.lists.length > 10, "there are tokens");
      harness.skewMs = Date.parse(pageTokens.createTime) - Date.now();
      const token = await harness.token(expected.owner);
      for (const { path, pageToken, uids } of pageTokens.lists) {
        const { status, body } = await request(harness, token, "GET", `${path}&page_token=${pageToken}`);
        assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
        const resources = Object.values(body).find(Array.isArray) as readonly { uid: string }[];
        assert.deepEqual(
          resources.map(({ uid }) => uid),
          uids,
          path,
        );
      }
      harness.skewMs = 0;
    });

    it("counts root groups that people created through the API, but not those created on the host", async () => {
      const { store } = harness.app.installation;
      const count = (identity: string) => store.read((tx) => tx.usage.count("roots", identity, 20));
      assert.deepEqual([await count(expected.owner), await count(expected.guest)], [0, 1]);
    });

    it("signs with the key of before, whose tokens are valid", async () => {
      const token = await harness.token(expected.owner);
      const { alg, kid } = JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString());
      const { keys } = harness.app.installation;
      assert.deepEqual([alg, kid], ["RS256", keys.getSigningKey().kid]);
      assert.ok(keys.listPublicJwks().some((jwk) => jwk.kid === kid));
      const headers = { authorization: `Bearer ${token}` };
      assert.equal((await fetch(`${harness.url}/iam/v2beta1/groups`, { headers })).status, 200);
    });

    it("decides on tokens of stored identities as before", async () => {
      const token = await harness.token(expected.owner);
      const { identities } = expected.answers["/iam/v2beta1/identities?page_size=200"] as { identities: Stored[] };
      for (const [name, claims] of Object.entries(acceptedClaims)) {
        const { uid } = identities.find((one) => one.name === name) ?? assert.fail(`there is no identity ${name}`);
        const decide = async (changed: object) => {
          const path = `/access/v1/identities/${uid}:testClaims`;
          const { status, body } = await request(harness, token, "POST", path, { claims: { ...claims, ...changed } });
          assert.equal(status, 200, JSON.stringify(body));
          return body.accepted ?? false;
        };
        assert.equal(await decide({}), true, name);
        // Claims that no condition of before speaks of change nothing.
        assert.equal(await decide({ nested: { environment: "other" }, repository_id: 1 }), true, name);
        for (const key of Object.keys(claims))
          assert.equal(await decide({ [key]: "https://other" }), false, `${name} ${key}`);
      }
    });

    it("accepts writes, and lists and counts new rows together with old ones", async () => {
      const token = await harness.token(expected.owner);
      const list = `/iam/v2beta1/groups?uidp.descendants_of=${expected.group}`;
      const total = async () => Number((await request(harness, token, "GET", list)).body.totalCount);
      const before = await total();
      const sent = { name: "new", description: "written after the upgrade" };
      const created = await request(harness, token, "POST", `/iam/v2beta1/groups/${expected.group}`, sent);
      assert.equal(created.status, 200);
      const read = await request(harness, token, "GET", `/iam/v2beta1/groups/${created.body.uid}`);
      assert.deepEqual([read.status, read.body], [200, created.body]);
      assert.deepEqual(findDifferences(sent, read.body), []);
      assert.equal(await total(), before + 1);
    });

    it("continues an audit log that stays intact", async () => {
      const flags = Object.entries(settings).flatMap(([name, value]) => [
        `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
        value,
      ]);
      const verify = async () => {
        const { code, stdout, stderr } = await host.run(["audit", "verify", ...flags]);
        assert.equal(code, 0, stderr);
        const lines = stdout.matchAll(/^(\S+): (\d+) sealed rows, head signed /gm);
        return new Map([...lines].map(([, root = "", rows]) => [root, Number(rows)]));
      };
      const before = (root: string) => expected.sealedRows[root] ?? 0;
      let sealed = await verify();
      // The rows of the test before this one are sealed after those of the earlier version.
      for (let tries = 0; tries < 100 && (sealed.get(expected.group) ?? 0) <= before(expected.group); tries++) {
        await sleep(50);
        sealed = await verify();
      }
      assert.ok((sealed.get(expected.group) ?? 0) > before(expected.group), "new rows are sealed");
      assert.ok(Object.keys(expected.sealedRows).length > 1);
      const fewer = Object.keys(expected.sealedRows).filter((root) => (sealed.get(root) ?? 0) < before(root));
      assert.deepEqual(fewer, []);
    });
  });
}

interface Stored {
  readonly uid: string;
  readonly name: string;
}

/** Claims that the identities of the fixtures accept, by their names (scripts/fixture-content.mjs). */
const acceptedClaims: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  literal: {
    iss: "https://token.actions.example.com",
    sub: "repo:fixture/app:ref:refs/heads/main",
    aud: "https://arbor.example",
  },
  pattern: { iss: "https://token.actions.example.com/fixture", sub: "repo:fixture/site", aud: FIXTURE_BASE_URL },
  claims: {
    iss: "https://token.actions.example.com",
    sub: "repo:fixture/app:any",
    aud: "https://registry.example",
    repository_owner: "fixture",
    environment: "production",
    ref: "refs/heads/release-12",
  },
};

async function request(harness: Harness, token: string, method: string, path: string, sent?: object) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const body = sent === undefined ? {} : { body: JSON.stringify(sent) };
  const response = await fetch(harness.url + path, { method, headers, ...body });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}
