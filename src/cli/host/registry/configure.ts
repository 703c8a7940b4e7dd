// `arbor registry configure`: what a stock registry needs to trust this service.
import { chmodSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Settings } from "../../../config/config.js";
import { readSecret } from "../../../registry/oci/notification-routes.js";
import { yamlText } from "../../output/yaml.js";
import { replaceFile } from "../../remote/auth/replace-file.js";
import { onHost, originOn, print } from "../host.js";
import { selfSigned } from "./certificates.js";

/** The certificates that the registry trusts, in the directory. */
const BUNDLE = "arbor-bundle.pem";
/** The sections for the registry's own configuration, in the directory. */
const SECTIONS = "arbor-registry.yml";

/** What `arbor registry configure` is told besides the settings. */
export interface ConfigureOptions {
  /** The directory to write to; made where it is not there. */
  readonly out: string;
  /** Where the registry finds that directory, such as where a container mounts it; the same place unless set. */
  readonly mountedAt?: string;
}

/**
 * Writes two files: the bundle with a certificate for each key that the registry has to trust, and the
 * YAML of the sections `auth` and `notifications`, readable by its owner alone where it holds the
 * secret. Nothing secret is printed.
 *
 * @throws Error when the directory cannot be written to, or the secret cannot be used.
 */
export async function configureCommand(settings: Settings, { out, mountedAt }: ConfigureOptions): Promise<void> {
  const { registryService: service, registrySecretFile: secretFile } = settings;
  await onHost(settings, async (host) => {
    const { baseUrl, issuer } = await originOn(host, settings);
    createShared(out);
    const [bundle, sections] = [join(out, BUNDLE), join(out, SECTIONS)];
    const certificates = host.keys.registryTrusted().map((pair) => selfSigned(pair, "Arbor registry tokens", 0));
    await replaceFile(bundle, certificates.join(""), 0o644);
    const rootcertbundle = join(mountedAt ?? realpathSync(out), BUNDLE);
    const auth = { token: { realm: `${baseUrl}/token`, service, issuer, rootcertbundle } };
    const text = yamlText({ auth, ...(secretFile && { notifications: notificationsOf(baseUrl, secretFile) }) });
    await replaceFile(sections, text, secretFile === undefined ? 0o644 : 0o600);
    print(bundle);
    print(sections);
    if (secretFile === undefined) {
      process.stderr.write("arbor: without --registry-secret-file the registry will not tell of what is pushed\n");
    }
  });
}

// The registry, which reads the bundle there, runs as another user.
function createShared(directory: string): void {
  const topmost = mkdirSync(directory, { recursive: true });
  if (topmost === undefined) return;
  const end = dirname(resolve(topmost));
  for (let path = resolve(directory); path !== end; path = dirname(path)) chmodSync(path, 0o755);
}

function notificationsOf(baseUrl: string, secretFile: string): JsonObject {
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
        // Pulls and blobs say nothing that Arbor keeps.
        ignore: { mediatypes: ["application/octet-stream"], actions: ["pull"] },
      },
    ],
  };
}
