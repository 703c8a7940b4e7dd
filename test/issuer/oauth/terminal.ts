// The terminal's side of a headless login, written anew.
import { createDecipheriv, createHash, createPublicKey, diffieHellman, generateKeyPairSync } from "node:crypto";
import type { HeadlessSession } from "../../../src/issuer/oauth/headless.js";

/** What a terminal does: a key, the code it shows, and how it opens the response. */
export function terminal() {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const key = String(publicKey.export({ format: "jwk" }).x);
  const hash = createHash("sha256").update(Buffer.from(key, "base64url")).digest();
  const bits = [...hash.subarray(0, 5)].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const digits = bits.match(/.{5}/g)?.map((five) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(five, 2)]);
  const code = digits?.join("") ?? "";
  return {
    key,
    code: `${code.slice(0, 4)}-${code.slice(4)}`,
    open({ ecdhPublicKey, encryptedIdtoken }: HeadlessSession): string {
      const x = Buffer.from(ecdhPublicKey).toString("ascii");
      const other = createPublicKey({ key: { kty: "OKP", crv: "X25519", x }, format: "jwk" });
      const secret = diffieHellman({ privateKey, publicKey: other });
      const sealed = Buffer.from(encryptedIdtoken);
      const decipher = createDecipheriv("aes-256-gcm", secret, sealed.subarray(0, 12));
      decipher.setAuthTag(sealed.subarray(-16));
      return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]).toString();
    },
  };
}
