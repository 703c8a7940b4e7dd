// The receivers of examples/receivers: what each must accept and refuse. One whose language is not here is left out, and
// says so.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import { after, before, describe, it } from "node:test";
import {
  BODY,
  type Claims,
  claimsOf,
  digestOf,
  EC,
  type EventIssuer,
  forgeries,
  GROUP,
  headersOf,
  RSA,
  SUBSCRIPTION,
  sign,
  spellings,
  startEventIssuer,
  twinOf,
  webhookOf,
} from "./event-issuer.js";
import { examples, type RunningExample, startExample } from "./examples.js";

let issuer: EventIssuer;
before(async () => {
  issuer = await startEventIssuer();
});
after(() => issuer.close());

/** Sends header fields as they are given, also two of one name, and returns the status. */
async function sendRaw(url: string, headers: readonly (readonly [string, string])[], body: string): Promise<number> {
  const sent = request(url, { method: "POST", headers: headers.flat() as unknown as OutgoingHttpHeaders });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  return response.statusCode ?? 0;
}

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
      assert.equal(await statusOf({ iat: nowS - 910, exp: nowS - 610 }), 403);
      assert.equal(await statusOf({ iat: nowS - 910, exp: nowS + 3_600 }), 403);
      assert.equal(await statusOf({ iat: nowS - 10, exp: nowS + 290 }), 200);
    });

    it("accepts clocks that differ by five minutes in either direction, or as much as is set", async () => {
      const nowS = Math.floor(Date.now() / 1_000);
      const shift = (seconds: number) => ({ iat: nowS + seconds, exp: nowS + seconds + 300 });
      // No clock that stands still: limits have room for the seconds that a busy machine takes.
      assert.deepEqual([await statusOf(shift(280)), await statusOf(shift(-480))], [200, 200]);
      assert.deepEqual([await statusOf(shift(420)), await statusOf(shift(-640))], [403, 403]);
      const strict = await startExample(example, issuer.url, GROUP, { TOLERANCE_SECONDS: "0" });
      try {
        const token = await sign(issuer, claimsOf(issuer, shift(120)));
        assert.equal((await fetch(strict.url, { method: "POST", headers: headersOf(token), body: BODY })).status, 403);
      } finally {
        strict.stop();
      }
    });

    for (const [name, forge] of Object.entries(forgeries)) {
      it(`refuses ${name} under a token that proves the attributes, but not under one of an older service`, async () => {
        assert.equal(await send(forge(headersOf(await sign(issuer, claimsOf(issuer, webhookOf()))))), 403);
        assert.equal(await send(forge(headersOf(await sign(issuer, claimsOf(issuer))))), 200);
      });
    }

    for (const [name, spell] of Object.entries(spellings)) {
      it(`accepts ${name}`, async () => {
        assert.equal(await send(spell(headersOf(await sign(issuer, claimsOf(issuer, webhookOf()))))), 200);
      });
    }

    it("accepts values of all characters", async () => {
      const headers = headersOf("", { "ce-subject": encodeURIComponent('ü %41 "quoted" 🌳'), "ce-note": "%0A=1:" });
      const token = await sign(issuer, claimsOf(issuer, webhookOf(headers)));
      assert.equal(await send({ ...headers, authorization: `Bearer ${token}` }), 200);
    });

    it("refuses two values of one attribute", async () => {
      const send = async (claims: Claims, ...more: (readonly [string, string])[]) => {
        const headers = Object.entries(headersOf(await sign(issuer, claimsOf(issuer, claims))));
        const framing = [
          ["host", new URL(receiver.url).host] as const,
          ["content-length", `${Buffer.byteLength(BODY)}`] as const,
        ];
        return sendRaw(receiver.url, [...framing, ...headers, ...more], BODY);
      };
      assert.equal(await send(webhookOf()), 200);
      assert.equal(await send(webhookOf(), ["ce-extra", ""]), 200, "an empty value is none");
      for (const second of ["id-2", ""]) {
        const refused = await send(webhookOf(), ["Ce-Id", second]);
        // Node joins both to one value, which is not the one that was signed.
        assert.equal(refused, language === "TypeScript" ? 403 : 400, `a second value of ${second.length} characters`);
      }
    });

    it("refuses other subscriptions and tokens that prove less, where it is told to", async () => {
      const settings = { SUBSCRIPTION, REQUIRE_ATTRIBUTES: "true" };
      const strict = await startExample(example, issuer.url, GROUP, settings);
      try {
        const statuses: number[] = [];
        const other = { subscription: `${GROUP}/0000000000000000` };
        for (const changed of [webhookOf(), webhookOf(undefined, other), {}]) {
          const token = await sign(issuer, claimsOf(issuer, changed));
          statuses.push((await fetch(strict.url, { method: "POST", headers: headersOf(token), body: BODY })).status);
        }
        assert.deepEqual(statuses, [200, 403, 403]);
        // Control: the one that is not told so accepts all of them.
        assert.equal(await statusOf(webhookOf(undefined, other)), 200);
        assert.equal(await statusOf({}), 200);
      } finally {
        strict.stop();
      }
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
