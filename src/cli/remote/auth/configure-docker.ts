// `arbor auth configure-docker`: from then on docker logs in at a registry by itself.
import { realpath } from "node:fs/promises";
import { invalidArgument } from "../../../kernel/errors.js";
import { printable } from "../../printable.js";
import { type ApiFlags, apiOf } from "./api.js";
import { changeCredentials, credentialsFile } from "./credentials-file.js";
import { dockerConfigFile, setCredentialHelper } from "./docker-config.js";
import { defaultBinDir, HELPER, isOnPath, writeShim } from "./docker-shim.js";
import { type WorkloadFlags, workloadOf } from "./login.js";
import { registryHost } from "./registry-host.js";

/** The flags of `arbor auth configure-docker`. */
export interface ConfigureDockerFlags extends ApiFlags, WorkloadFlags {
  readonly registry: string;
  readonly binDir?: string;
}

/**
 * `arbor auth configure-docker`
 *
 * @throws ApiError INVALID_ARGUMENT for a registry that is no host
 */
export async function configureDockerCommand(flags: ConfigureDockerFlags): Promise<void> {
  const api = apiOf(flags);
  const { registry, binDir = defaultBinDir() } = flags;
  const host = registryHost(registry);
  if (host === undefined || host !== registry.toLowerCase()) {
    const description = "must be a host, with its port where it has one, such as registry.example.com:5000";
    throw invalidArgument({ field: "--registry", description });
  }
  const workload = await workloadOf(flags);
  const config = dockerConfigFile();
  // All under the lock of the credentials, so that two of these do not undo each other.
  await changeCredentials(credentialsFile(), async (now) => {
    const shim = await writeShim(binDir, await ownCommand());
    const before = await setCredentialHelper(config, host, HELPER);
    print(`docker gets the credentials of ${host} from ${shim} (${config})`);
    if (before !== undefined && before !== HELPER) print(`before, it got them from docker-credential-${before}`);
    return { ...now, registries: new Map(now.registries).set(host, { api, ...(workload && { workload }) }) };
  });
  if (!isOnPath(binDir)) {
    process.stderr.write(`arbor: warning: docker will not find the helper: add ${binDir} to PATH\n`);
  }
}

// As this process was started, but without depending on PATH, which differs where docker runs.
async function ownCommand(): Promise<string[]> {
  const [, script = ""] = process.argv;
  return [process.execPath, ...process.execArgv, await realpath(script)];
}

function print(line: string): void {
  process.stdout.write(`${printable(line)}\n`);
}
