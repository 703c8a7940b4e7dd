// What files in PEM must contain, checked before anything is opened: OpenSSL's own errors name neither file nor rule, and
// Node uses what comes before a damaged certificate of an authority and says nothing.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";

const CERTIFICATE = /^(X509 |TRUSTED )?CERTIFICATE$/;
const BLOCK = /^-----BEGIN ([A-Z0-9 ]+)-----[ \t\r]*\n(?:(?!-----)[\s\S])*\n-----END \1-----[ \t\r]*$/gm;
const BOUNDARY = /^[ \t]*-{2,}.*(BEGIN|END)/gm;

/** @throws Error unless the content is a certificate in PEM, with the chain that may follow it */
export function checkCertificate(content: Buffer): void {
  assertCertificates(content);
  assertUsable({ cert: content });
}

/** @throws Error unless the content is the certificates of authorities in PEM */
export function checkAuthorities(content: Buffer): void {
  assertCertificates(content);
  assertUsable({ ca: content });
}

/** @throws Error unless the content is a private key in PEM without a passphrase */
export function checkPrivateKey(content: Buffer): void {
  const rule = "must contain a private key in PEM without a passphrase";
  // DER is accepted by the parser, but not where TLS reads the file.
  if (!content.includes("-----BEGIN ")) throw new Error(rule);
  try {
    createPrivateKey(content);
  } catch {
    throw new Error(rule);
  }
  assertUsable({ key: content });
}

/** Whether the private key belongs to the certificate. Both are in PEM. */
export function isKeyOf(certificate: Buffer, key: Buffer): boolean {
  return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
}

function assertCertificates(content: Buffer): void {
  const text = content.toString("latin1");
  const blocks = [...text.matchAll(BLOCK)];
  const certificates = blocks.filter(([, type = ""]) => CERTIFICATE.test(type)).map(([block]) => block);
  const damaged = certificates.findIndex((block) => !isCertificate(block));
  if (certificates.length === 0 || (certificates.length === 1 && damaged === 0))
    throw new Error("must contain a certificate in PEM");
  if (damaged >= 0) throw new Error(`must contain certificates in PEM: number ${damaged + 1} cannot be read`);
  // A block that has lost one of its ends does not count as one, and what follows it might be skipped.
  if (text.match(BOUNDARY)?.length !== blocks.length * 2) {
    throw new Error("must contain whole blocks in PEM: one of them has no beginning or no end");
  }
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).raw.length > 0;
  } catch {
    return false;
  }
}

// What TLS itself finds, such as a key that is too short.
function assertUsable(options: SecureContextOptions): void {
  try {
    createSecureContext(options);
  } catch (error) {
    const { reason, message } = error as { readonly reason?: string; readonly message: string };
    throw new Error(`must be usable for TLS: ${reason ?? message}`);
  }
}
