// `arbor registry configure`: the files with which a container registry trusts this service.
import { type JsonWebKey, randomBytes, sign } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
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
import type { Settings } from "../../../config/config.js";
import { computeLibtrustFingerprint, type KeyPair } from "../../../issuer/keys/key-generation.js";
import { readSecret } from "../../../registry/oci/notification-routes.js";
import { formatYaml } from "../../output/format.js";
import { replaceFile } from "../../shared-file.js";
import { print, readOrigin, withInstallation } from "../host.js";

/** The name of the file with the certificates that the registry trusts. */
const BUNDLE = "arbor-bundle.pem";
/** The name of the file with the same keys as a JWKS, for registries of version 3. */
const JWKS = "arbor-jwks.json";
/** The name of the file with sections of the registry's configuration. */
const SECTIONS = "arbor-registry.yml";

interface ConfigureOptions {
  /** The directory to write to; a missing one is created. */
  readonly out: string;
  /** The path of that directory for the registry, such as a mount in its container; the same path by default. */
  readonly mountedAt?: string;
}

/**
 * Writes three files: the bundle, with a certificate for each key that the registry must trust, the same keys as a JWKS,
 * and the YAML of the sections `auth` and `notifications`. Only the owner can read the YAML when it contains the secret.
 *
 * Version 2 of distribution computes the `kid` of a certificate as Arbor does. Version 3 computes another one, and finds
 * the `kid` of a token in the JWKS alone. Each ignores the option of the other.
 *
 * @throws Error when the directory cannot be written to, or the secret cannot be used.
 */
export async function configureCommand(settings: Settings, { out, mountedAt }: ConfigureOptions): Promise<void> {
  const { registryService: service, registrySecretFile: secretFile } = settings;
  await withInstallation(settings, "read", async (host) => {
    const { baseUrl, issuer } = await readOrigin(host, settings);
    createReadableDirectory(out);
    const [bundle, jwks, sections] = [join(out, BUNDLE), join(out, JWKS), join(out, SECTIONS)];
    const pairs = host.keys.listRegistryKeys();
    const certificates = pairs.map((pair) => createCertificate(pair, "Arbor registry tokens", 0));
    await replaceFile(bundle, certificates.join(""), 0o644);
    await replaceFile(jwks, `${JSON.stringify({ keys: pairs.map(toJwk) }, null, 2)}\n`, 0o644);
    const mount = mountedAt ?? realpathSync(out);
    const trusted = { rootcertbundle: join(mount, BUNDLE), jwks: join(mount, JWKS) };
    const auth = { token: { realm: `${baseUrl}/token`, service, issuer, ...trusted } };
    const text = formatYaml({ auth, ...(secretFile && { notifications: buildNotifications(baseUrl, secretFile) }) });
    await replaceFile(sections, text, secretFile === undefined ? 0o644 : 0o600);
    for (const file of [bundle, jwks, sections]) print(file);
    if (secretFile === undefined) {
      process.stderr.write("arbor: without --registry-secret-file the registry will not tell of what is pushed\n");
    }
  });
}

function toJwk({ publicKey }: KeyPair): JsonWebKey {
  const kid = computeLibtrustFingerprint(publicKey);
  return { ...publicKey.export({ format: "jwk" }), kid, use: "sig", alg: "ES256" };
}

// The registry reads the bundle as another user.
function createReadableDirectory(directory: string): void {
  const topmost = mkdirSync(directory, { recursive: true });
  if (topmost === undefined) return;
  const end = dirname(resolve(topmost));
  for (let path = resolve(directory); path !== end; path = dirname(path)) chmodSync(path, 0o755);
}

function buildNotifications(baseUrl: string, secretFile: string): JsonObject {
  readSecret(secretFile);
  const secret = readFileSync(secretFile, "utf8").trim();
  return {
    endpoints: [
      {
        name: "arbor",
        url: `${baseUrl}/registry/notifications`,
        headers: { Authorization: [`Bearer ${secret}`] },
        timeout: "5s",
        threshold: 5,
        backoff: "1s",
        // Arbor ignores pulls and blobs.
        ignore: { mediatypes: ["application/octet-stream"], actions: ["pull"] },
      },
    ],
  };
}

// The certificate bundle of a registry, which reads the keys that it trusts from certificates and ignores the rest of
// them.

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
function createCertificate({ privateKey, publicKey }: KeyPair, name: string, nowMs: number): string {
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
