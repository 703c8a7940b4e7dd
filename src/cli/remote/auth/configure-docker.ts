// `arbor auth configure-docker` makes docker get its credentials for a registry from `arbor`. It writes a program,
// `docker-credential-arbor`, and an entry with its name to docker's configuration.

import { existsSync } from "node:fs";
import { readFile, realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { createDirectories } from "../../../kernel/directories.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { Code, CommandError, invalidFlag } from "../../errors.js";
import { escapeControls } from "../../output/terminal.js";
import { replaceFile } from "../../shared-file.js";
import { type ApiFlags, resolveApi } from "../service.js";
import { changeCredentials, findCredentialsFile } from "./credentials-file.js";
import { parseRegistryHost } from "./docker-credential.js";
import { findWorkload, type WorkloadFlags } from "./login.js";

/** The name of the program in docker's configuration. */
const HELPER = "arbor";

const MARK = "# Written by `arbor auth configure-docker`, which writes it again when run again.";

/** The flags of `arbor auth configure-docker`. */
export interface ConfigureDockerFlags extends ApiFlags, WorkloadFlags {
  readonly registry: string;
  readonly binDir?: string;
}

/**
 * `arbor auth configure-docker`
 *
 * @throws CommandError INVALID_ARGUMENT for a registry that is no host
 */
export async function configureDockerCommand(flags: ConfigureDockerFlags): Promise<void> {
  const api = resolveApi(flags);
  const { registry, binDir = findDefaultBinDir() } = flags;
  const host = parseRegistryHost(registry);
  const asDockerNamesIt = registry.toLowerCase();
  if (host === undefined || host !== asDockerNamesIt.replace(/:443$/, "")) {
    const description = "must be a host, with its port where it has one, such as registry.example.com:5000";
    throw invalidFlag("--registry", description);
  }
  const workload = await findWorkload(api, flags);
  const config = findDockerConfigFile();
  // Under the lock of the credentials, so that concurrent runs do not overwrite each other's changes.
  await changeCredentials(findCredentialsFile(), async (stored) => {
    const helper = await writeHelper(binDir, await findOwnCommand());
    const before = await setCredentialHelper(config, asDockerNamesIt, HELPER);
    print(`docker gets the credentials of ${host} from ${helper} (${config})`);
    if (before !== undefined && before !== HELPER) print(`before, it got them from docker-credential-${before}`);
    return { ...stored, registries: new Map(stored.registries).set(host, { api, ...(workload && { workload }) }) };
  });
  // Also that of the package of the command line, which npm has installed.
  if (!isOnPath(`docker-credential-${HELPER}`)) {
    process.stderr.write(`arbor: warning: docker will not find the helper: add ${binDir} to PATH\n`);
  }
}

// The command line of this process with absolute paths, because docker may run with another PATH.
async function findOwnCommand(): Promise<string[]> {
  const [, script = ""] = process.argv;
  return [process.execPath, ...process.execArgv, await realpath(script)];
}

function print(line: string): void {
  process.stdout.write(`${escapeControls(line)}\n`);
}

/** Finds the path of docker's configuration: `config.json` in `DOCKER_CONFIG`, or in `~/.docker`. */
export function findDockerConfigFile(env: Readonly<Record<string, string | undefined>> = process.env): string {
  return join(env.DOCKER_CONFIG || join(homedir(), ".docker"), "config.json");
}

/**
 * Makes docker get the credentials of a registry from `docker-credential-<helper>`. The rest of the file and its
 * permissions stay; a missing file is created.
 *
 * @param host the registry's host, with the port where one is given
 * @returns the former helper of the registry; undefined for none
 * @throws CommandError FAILED_PRECONDITION when the file has no JSON object; it is not changed
 */
export async function setCredentialHelper(file: string, host: string, helper: string): Promise<string | undefined> {
  createDirectories(dirname(file), 0o700);
  // A symbolic link stays, and its target changes.
  const target = await realpath(file).catch(() => file);
  const mode = await stat(target).then(
    (found) => found.mode & 0o777,
    () => undefined,
  );
  const config = mode === undefined ? {} : parseConfig(await readFile(target, "utf8"), file);
  const { credHelpers = {} } = config;
  if (!isJsonObject(credHelpers)) throw invalidConfig(file);
  const before = credHelpers[host];
  if (before !== helper) {
    const text = JSON.stringify({ ...config, credHelpers: { ...credHelpers, [host]: helper } }, null, "\t");
    await replaceFile(target, `${text}\n`, mode ?? 0o600);
  }
  return typeof before === "string" ? before : undefined;
}

function parseConfig(text: string, file: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    // The error of the parser would contain a part of the file, which may have passwords.
    throw invalidConfig(file);
  }
  if (!isJsonObject(value)) throw invalidConfig(file);
  return value;
}

function invalidConfig(file: string) {
  return new CommandError(Code.FailedPrecondition, `${file} is not a configuration of docker, and was not changed`);
}

/** The directory of the program without `--bin-dir`. */
function findDefaultBinDir(): string {
  return join(homedir(), ".local", "bin");
}

/**
 * Writes the program.
 *
 * @param binDir the directory, made if missing
 * @param command the command line that runs `arbor`: a program and its first arguments
 * @returns the path of the program
 * @throws CommandError FAILED_PRECONDITION when another program has this path
 */
async function writeHelper(binDir: string, command: readonly string[]): Promise<string> {
  const file = join(resolve(binDir), `docker-credential-${HELPER}`);
  const before = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return MARK;
    throw error;
  });
  if (!before.includes(MARK)) {
    throw new CommandError(
      Code.FailedPrecondition,
      `${file} exists and was not written by arbor; choose another directory with --bin-dir`,
    );
  }
  createDirectories(binDir);
  const line = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  await replaceFile(file, `#!/bin/sh\n${MARK}\nexec ${line} auth docker-credential "$@"\n`, 0o755);
  return file;
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((entry) => entry !== "" && existsSync(join(entry, program)));
}
