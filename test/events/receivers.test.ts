// The receivers of examples/receivers: what each must accept and refuse. One whose language is not here is left out, and
// says so.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import {
  BODY,
  type Claims,
  claimsOf,
  digestOf,
  EC,
  type EventIssuer,
  GROUP,
  headersOf,
  RSA,
  sign,
  startEventIssuer,
  twinOf,
} from "./event-issuer.js";
import { examples, type RunningExample, startExample } from "./examples.js";

let issuer: EventIssuer;
before(async () => {
  issuer = await startEventIssuer();
});
after(() => issuer.close());

for (const example of examples) {
  const { language } = example;
  const why = example.missing();
  if (why !== undefined) console.log(`the receiver in ${language} is not tested: ${why}`);
  describe(`the receiver in ${language}`, { skip: why ?? false }, () => {
    let receiver: RunningExample;
    before(async () => {
      receiver = await startExample(example, issuer.url, GROUP);
    });
    after(() => receiver?.stop());

    const send = async (headers: Record<string, string>, body = BODY) =>
      (await fetch(receiver.url, { method: "POST", headers, body })).status;
    const statusOf = async (changed: Claims) => send(headersOf(await sign(issuer, claimsOf(issuer, changed))));

    it("accepts an event of either algorithm, and prints it", async () => {
      assert.equal(await send(headersOf(await sign(issuer))), 200);
      assert.equal(await send(headersOf(await sign(issuer, claimsOf(issuer), EC), { "ce-id": "id%202" })), 200);
      const printed = [
        JSON.parse((await receiver.lines.next()).value),
        JSON.parse((await receiver.lines.next()).value),
      ];
      assert.deepEqual(
        printed.map(({ id, type, subject }) => [id, type, subject]),
        ["id-1", "id 2"].map((id) => [id, "dev.chainguard.api.iam.group.created.v1", GROUP]),
      );
    });

    it("accepts an event again, with a token of its own, and refuses a token that was used", async () => {
      const token = await sign(issuer);
      assert.equal(await send(headersOf(token)), 200);
      assert.equal(await send(headersOf(token)), 403);
      assert.equal(await send(headersOf(token, { "ce-id": "id-2" })), 403);
      assert.equal(await send(headersOf(await sign(issuer))), 200);
      const signed = await sign(issuer, claimsOf(issuer), EC);
      assert.equal(await send(headersOf(twinOf(signed))), 200);
      assert.equal(await send(headersOf(signed)), 403);
    });

    it("refuses data that was changed", async () => {
      assert.equal(await send(headersOf(await sign(issuer)), BODY.replace("someone", "anybody")), 403);
      assert.equal(await statusOf({ webhook: {} }), 403);
      assert.equal(await statusOf({ webhook: undefined }), 403);
    });

    it("refuses tokens of others", async () => {
      const [root = ""] = GROUP.split("/");
      const others: readonly Claims[] = [
        { iss: "https://evil.example.com" },
        { aud: "https://platform.example.com" },
        { sub: `webhook:${root}` },
        { sub: GROUP },
      ];
      for (const changed of others) assert.equal(await statusOf(changed), 403, JSON.stringify(changed));
      const { foreign } = issuer.keys;
      assert.equal(await send(headersOf(await sign(issuer, claimsOf(issuer), RSA, foreign))), 403);
      assert.equal(await send(headersOf(await sign(issuer, claimsOf(issuer), { ...RSA, kid: "new" }, foreign))), 403);
    });

    it("refuses an old token, whatever its expiry says", async () => {
      const nowS = Math.floor(Date.now() / 1_000);
      assert.equal(await statusOf({ iat: nowS - 640, exp: nowS - 340 }), 403);
      assert.equal(await statusOf({ iat: nowS - 340, exp: nowS + 3_600 }), 403);
      assert.equal(await statusOf({ iat: nowS - 10, exp: nowS + 290 }), 200);
    });

    it("refuses tokens without a signature of a key", async () => {
      const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
      assert.equal(await send(headersOf(`${encode({ alg: "none" })}.${encode(claimsOf(issuer))}.`)), 403);
      assert.equal(await send(headersOf("x.y.z")), 403);
      assert.equal(await send(headersOf("x")), 403);
    });

    it("answers as published receivers to what is no event", async () => {
      const { authorization: _, ...anonymous } = headersOf("");
      assert.equal(await send(anonymous), 401);
      assert.equal(await send(headersOf(await sign(issuer), { "ce-specversion": "0.3" })), 400);
      const text = "no JSON";
      const token = await sign(issuer, claimsOf(issuer, { webhook: { digest: digestOf(text) } }));
      assert.equal(await send(headersOf(token), text), 400);
    });
  });
}
