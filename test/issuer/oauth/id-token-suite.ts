// The one exchange of an ID token, where several arrive at once, on either database.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Harness } from "../../support/harness.js";
import { exchange, makeIdToken } from "./login-world.js";

const TOKENS = 12;
const AT_ONCE = 8;

/**
 * Declares the test.
 *
 * @param start starts the nodes of one installation
 */
export function idTokenNodesSuite(name: string, start: () => Promise<readonly Harness[]>): void {
  test(`${name}: of exchanges at once exactly one succeeds`, async (t) => {
    const nodes = await start();
    t.after(() => Promise.all(nodes.map((node) => node.stop())));
    const [first] = nodes;
    assert.ok(first);
    const { uid, token } = await first.identity();
    const issuer = String(JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).iss);
    for (let i = 0; i < TOKENS; i++) {
      const maker = nodes[i % nodes.length] ?? first;
      const idToken = await makeIdToken(maker, issuer, { identityUid: uid }, Date.now());
      const ask = async (n: number): Promise<number> =>
        (await exchange((nodes[n % nodes.length] ?? first).url, idToken, { aud: issuer })).status;
      const statuses = await Promise.all(Array.from({ length: AT_ONCE }, (_, n) => ask(n)));
      assert.deepEqual(statuses.sort(), [200, ...Array(AT_ONCE - 1).fill(401)]);
    }
  });
}
