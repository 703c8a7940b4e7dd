import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import { Code } from "@connectrpc/connect";
import { CommandError } from "../../../../src/cli/errors.js";
import { createHeadlessKey } from "../../../../src/cli/remote/auth/headless-login.js";
import { sealOutcome } from "./login-service.js";

const ID_TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJzdWIifQ.c2ln";

describe("the key of a headless login", () => {
  it("is new each time, and named by its raw public key", () => {
    const codes = new Set(Array.from({ length: 5 }, () => createHeadlessKey().code));
    assert.equal(codes.size, 5);
    for (const code of codes) {
      assert.equal(Buffer.from(code, "base64url").length, 32);
      assert.equal(Buffer.from(code, "base64url").toString("base64url"), code);
    }
  });

  it("has a confirmation code: the first eight digits of the base32 of its hash", () => {
    for (let i = 0; i < 20; i++) {
      const { code, confirmation } = createHeadlessKey();
      const hash = createHash("sha256").update(Buffer.from(code, "base64url")).digest("hex");
      // The first 40 bits as a number, in digits of 32, which Node counts from 0 to v.
      const digits = Number.parseInt(hash.slice(0, 10), 16).toString(32).padStart(8, "0");
      const base32 = [...digits].map((digit) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(digit, 32)]);
      assert.equal(confirmation.replace("-", ""), base32.join(""));
      assert.match(confirmation, /^[A-Z2-7]{4}-[A-Z2-7]{4}$/);
    }
  });

  const outcomes: [what: string, text: string, expected: object][] = [
    ["a bare ID token", ID_TOKEN, { idToken: ID_TOKEN }],
    ["an ID token", JSON.stringify({ id_token: ID_TOKEN }), { idToken: ID_TOKEN }],
    [
      "an ID token of nobody's provider",
      JSON.stringify({ id_token: ID_TOKEN, identity_provider: "" }),
      { idToken: ID_TOKEN },
    ],
    [
      "an ID token of an organisation's provider",
      JSON.stringify({ id_token: ID_TOKEN, identity_provider: "01/23" }),
      { idToken: ID_TOKEN, provider: "01/23" },
    ],
  ];
  for (const [what, text, expected] of outcomes) {
    it(`opens ${what}`, async () => {
      const key = createHeadlessKey();
      const { ecdhPublicKey, encryptedIdtoken } = await sealOutcome(key.code, text);
      assert.deepEqual(key.open(ecdhPublicKey, encryptedIdtoken), expected);
    });
  }

  it("opens nothing else", async () => {
    const key = createHeadlessKey();
    const { ecdhPublicKey, encryptedIdtoken } = await sealOutcome(key.code, ID_TOKEN);
    const other = await sealOutcome(createHeadlessKey().code, ID_TOKEN);
    const noToken = await sealOutcome(key.code, '{"id_token":"two words"}');
    const flipped = Buffer.from(encryptedIdtoken, "base64");
    flipped.writeUInt8(flipped.readUInt8(20) ^ 1, 20);
    const inBase64 = (text: string) => Buffer.from(text).toString("base64");
    // Agrees on zeros with every key (RFC 7748, section 6.1).
    const zeros = inBase64(Buffer.alloc(32).toString("base64url"));
    const cases: [what: string, serviceKey: unknown, text: unknown][] = [
      ["sealed for another", other.ecdhPublicKey, other.encryptedIdtoken],
      ["with another's key", other.ecdhPublicKey, encryptedIdtoken],
      ["changed", ecdhPublicKey, flipped.toString("base64")],
      ["cut short", ecdhPublicKey, encryptedIdtoken.slice(0, 20)],
      ["not sealed", ecdhPublicKey, inBase64(ID_TOKEN)],
      ["without key", "", encryptedIdtoken],
      ["with a key that is too short", inBase64("AAAA"), encryptedIdtoken],
      ["with the key of zeros", zeros, encryptedIdtoken],
      ["with members of other types", 1, null],
      ["sealed, but no token", noToken.ecdhPublicKey, noToken.encryptedIdtoken],
    ];
    for (const [what, serviceKey, text] of cases) {
      assert.throws(
        () => key.open(serviceKey, text),
        (error) =>
          error instanceof CommandError && error.code === Code.Internal && !error.message.includes("two words"),
        what,
      );
    }
  });
});
