// What files in PEM must contain, checked before anything is opened: OpenSSL's own errors name neither file nor rule.
import { createPrivateKey, X509Certificate } from "node:crypto";

/** @throws Error unless the content begins with a certificate in PEM */
export function checkCertificate(content: Buffer): void {
  assertPem(content, "a certificate in PEM", () => new X509Certificate(content));
}

/** @throws Error unless the content is a private key in PEM without a passphrase */
export function checkPrivateKey(content: Buffer): void {
  assertPem(content, "a private key in PEM without a passphrase", () => createPrivateKey(content));
}

/** Whether the private key belongs to the certificate. Both are in PEM. */
export function isKeyOf(certificate: Buffer, key: Buffer): boolean {
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
}

function assertPem(content: Buffer, what: string, parse: () => unknown): void {
  try {
    // DER is accepted by the parsers, but not where TLS reads the file.
    if (content.includes("-----BEGIN ")) return void parse();
  } catch {
    // The rule is the same.
  }
  throw new Error(`must contain ${what}`);
}
