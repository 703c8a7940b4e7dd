// The certificate bundle of a registry, which reads the keys that it trusts from certificates and ignores the rest of
// them.
import { randomBytes, sign } from "node:crypto";
import { AsnConvert } from "@peculiar/asn1-schema";
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  Certificate,
  Name,
  RelativeDistinguishedName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Time,
  Validity,
  Version,
} from "@peculiar/asn1-x509";
import type { KeyPair } from "../../../issuer/keys/key-generation.js";

/** `ecdsa-with-SHA256` (RFC 5758, section 3.2). */
const ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2";
/** `id-at-commonName` (RFC 5280, appendix A.1). */
const COMMON_NAME = "2.5.4.3";
/** The time of a certificate without an end (RFC 5280, section 4.1.2.5). */
const NEVER = new Date("9999-12-31T23:59:59Z");

/**
 * Creates a self-signed certificate of a P-256 key (RFC 5280), in PEM (RFC 7468).
 *
 * @param name its subject and issuer, 1 to 64 characters
 * @param nowMs the start of its validity, in epoch milliseconds
 */
export function createCertificate({ privateKey, publicKey }: KeyPair, name: string, nowMs: number): string {
  const algorithm = new AlgorithmIdentifier({ algorithm: ECDSA_WITH_SHA256 });
  const subject = new Name([
    new RelativeDistinguishedName([
      new AttributeTypeAndValue({ type: COMMON_NAME, value: new AttributeValue({ utf8String: name }) }),
    ]),
  ]);
  const validity = new Validity();
  // No fractions of a second, and another type of time from 2050 on (RFC 5280, section 4.1.2.5).
  validity.notBefore = new Time(new Date(Math.floor(nowMs / 1000) * 1000));
  validity.notAfter = new Time({ generalTime: NEVER });
  const spki = publicKey.export({ type: "spki", format: "der" });
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: generateSerialNumber(),
    signature: algorithm,
    issuer: subject,
    validity,
    subject,
    subjectPublicKeyInfo: AsnConvert.parse(spki, SubjectPublicKeyInfo),
  });
  const signature = sign("sha256", Buffer.from(AsnConvert.serialize(tbsCertificate)), privateKey);
  const certificate = new Certificate({
    tbsCertificate,
    signatureAlgorithm: algorithm,
    signatureValue: new Uint8Array(signature).buffer,
  });
  const lines =
    Buffer.from(AsnConvert.serialize(certificate))
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

// A positive number, whose DER encoding has no leading zero byte.
function generateSerialNumber(): ArrayBuffer {
  const bytes = new Uint8Array(randomBytes(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.buffer;
}
