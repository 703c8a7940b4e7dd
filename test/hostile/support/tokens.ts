// Tokens that nobody signed.

/** A JWT with these claims whose signature is zeroes. */
export function createUnsignedToken(claims: object, kid?: string): string {
  const nowS = Math.floor(Date.now() / 1000);
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const header = { alg: "ES256", typ: "JWT", ...(kid !== undefined && { kid }) };
  const signature = Buffer.alloc(64).toString("base64url");
  return `${part(header)}.${part({ iat: nowS, exp: nowS + 600, ...claims })}.${signature}`;
}
