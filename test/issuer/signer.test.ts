// Organisations sign in turns: one with a thousand tokens to sign does not delay another's first.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, it } from "node:test";
import { createSigner } from "../../src/issuer/signer.js";
import { encodeJwt, signJwt } from "../../src/kernel/jws.js";

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const jwt = encodeJwt("JWT", { a: 1 }, { kid: "k", key: privateKey });

describe("signing", () => {
  it("takes turns between organisations, and signs every token", async () => {
    const order: string[] = [];
    const signer = createSigner();
    const sign = async (organisation: string) => {
      assert.match(await signer(jwt, organisation), /^[\w-]+\.[\w-]+\.[\w-]{342}$/);
      order.push(organisation);
    };
    const many = Array.from({ length: 300 }, () => sign("many"));
    await sign("one");
    assert.ok(order.indexOf("one") < 10, `it was signed after ${order.indexOf("one")} others`);
    await Promise.all(many);

    // The control: without turns it comes last.
    const plain: string[] = [];
    const rest = Array.from({ length: 300 }, () => signJwt(jwt).then(() => plain.push("many")));
    await signJwt(jwt).then(() => plain.push("one"));
    await Promise.all(rest);
    assert.ok(plain.indexOf("one") > 200);
  });

  it("leaves a thread to others while one organisation signs", async () => {
    let running = 0;
    let most = 0;
    const slow = async () => {
      most = Math.max(most, ++running);
      await new Promise((resolve) => setTimeout(resolve, 5));
      running--;
      return "signed";
    };
    const signer = createSigner(slow);
    await Promise.all(Array.from({ length: 20 }, () => signer(jwt, "one")));
    assert.equal(most, 2);
    await Promise.all(Array.from({ length: 30 }, (_, i) => signer(jwt, `org ${i % 3}`)));
    assert.equal(most, 3);
  });

  it("rejects only the organisation with too many that wait, and frees the slot of a failed one", async () => {
    const limits = { running: 2, runningPerAccount: 1, runningPerTarget: 9, waiting: 10, waitingPerAccount: 2 };
    let fail = () => {};
    const signer = createSigner(() => new Promise((_, reject) => (fail = () => reject(new Error("broken")))), limits);
    const first = signer(jwt, "a");
    const waiting = [signer(jwt, "a"), signer(jwt, "a")];
    await assert.rejects(signer(jwt, "a"), /too many tokens of this organisation are being signed/);
    for (const one of [first, ...waiting]) {
      await new Promise((resolve) => setImmediate(resolve));
      fail();
      await assert.rejects(one, /broken/);
    }
    const other = signer(jwt, "b");
    await new Promise((resolve) => setImmediate(resolve));
    fail();
    await assert.rejects(other, /broken/);
  });
});
