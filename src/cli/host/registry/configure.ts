// `arbor registry configure`: the files with which a container registry trusts this service.
import type { JsonWebKey } from "node:crypto";
import { chmodSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { type Settings, SettingsError, settings as settingTable } from "../../../config/config.js";
import { readSettingFile } from "../../../config/setting-files.js";
import { computeLibtrustFingerprint, type KeyPair } from "../../../issuer/keys/key-generation.js";
import { createDirectories } from "../../../kernel/directories.js";
import { parseRegistrySecret } from "../../../kernel/files.js";
import { formatYaml } from "../../output/format.js";
import { replaceFile } from "../../shared-file.js";
import { print, readOrigin, withInstallation } from "../host.js";
import { createCertificate } from "./certificate.js";

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
 * @throws Error when the directory cannot be written to; SettingsError when the secret cannot be used
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
  const topmost = createDirectories(directory);
  if (topmost === undefined) return;
  const end = dirname(resolve(topmost));
  for (let path = resolve(directory); path !== end; path = dirname(path)) chmodSync(path, 0o755);
}

function readSecret(file: string): string {
  const problems: string[] = [];
  const content = readSettingFile(settingTable.registrySecretFile, file, "--registry-secret-file", problems);
  if (content === undefined) throw new SettingsError(problems);
  return content.toString();
}

function buildNotifications(baseUrl: string, secretFile: string): JsonObject {
  const secret = parseRegistrySecret(readSecret(secretFile));
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
