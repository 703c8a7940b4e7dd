// Sessions of the console on two nodes of one installation: no node knows anything that the other does not.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { restAs } from "../../contract/rest.js";
import type { Harness } from "../../support/harness.js";
import { claimsOf } from "../oauth/login-kit.js";
import { assertNoSession, assertOpen, ConsoleBrowser, makeCode } from "./browser.js";

/** The base URL of both nodes. */
export const BASE_URL = "http://arbor.example";

/**
 * Declares the tests.
 *
 * @param start starts two nodes with {@link BASE_URL}, whose transactions may wait for one another
 */
export function consoleNodesSuite(name: string, start: () => Promise<readonly [Harness, Harness]>): void {
  describe(name, () => {
    let nodes: readonly [Harness, Harness];
    before(async () => {
      nodes = await start();
    });
    after(() => Promise.all(nodes.map((node) => node.stop())));

    /** One browser, at each node. */
    function pages(): readonly [ConsoleBrowser, ConsoleBrowser] {
      const [here, there] = nodes.map(({ url }) => new ConsoleBrowser(url, BASE_URL));
      assert.ok(here && there);
      there.key = here.key;
      return [here, there];
    }

    async function codeOf() {
      const { uid, token } = await nodes[0].identity();
      return { token, grant: await makeCode(nodes[0], BASE_URL, uid, Date.now()) };
    }

    test("one begins the session and the other renews and ends it", async () => {
      const [here, there] = pages();
      const { grant } = await codeOf();
      const { session, accessToken } = assertOpen(await here.signIn(grant));
      there.cookie = here.cookie;
      const renewed = assertOpen(await there.renew());
      assert.equal(renewed.session.id, session.id);
      assert.equal(claimsOf(renewed.accessToken).sub, claimsOf(accessToken).sub);
      assert.equal((await there.end()).status, 200);
      assertNoSession(await here.renew());
    });

    test("a code begins one session, however often and wherever it is redeemed at once", async () => {
      const { grant, token } = await codeOf();
      const browsers = [...pages(), ...pages()];
      for (const browser of browsers) browser.key = browsers[0]?.key ?? "";
      const answers = await Promise.all(browsers.map((browser) => browser.signIn(grant)));
      const ids = new Set(answers.map((answer) => assertOpen(answer).session.id));
      assert.equal(ids.size, 1);
      const { json } = await restAs(nodes[1].url, token, "/sessions/v1")("GET", "/sessions");
      assert.equal((json as { sessions: unknown[] }).sessions.length, 1);
      const renewals = await Promise.all(browsers.map((browser) => browser.renew()));
      assert.equal(renewals.filter(({ status }) => status === 200).length, 1, "the last cookie alone is good");
    });

    test("a session that ended at one is not extended by the other", async () => {
      const [here, there] = pages();
      const { grant } = await codeOf();
      assertOpen(await here.signIn(grant));
      there.cookie = here.cookie;
      nodes[1].skewMs = 3_600_000;
      const [, ...renewals] = await Promise.all([here.copy().end(), ...[1, 2, 3].map(() => there.copy().renew())]);
      for (const { status } of renewals) assert.ok(status === 200 || status === 401);
      assertNoSession(await there.renew());
      nodes[1].skewMs = 0;
      assertNoSession(await here.renew());
    });
  });
}
