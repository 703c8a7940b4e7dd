// The configuration of docker, which is the person's: one entry in it is ours.
import { mkdir, readFile, realpath, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { Code } from "@connectrpc/connect";
import { failure } from "./failure.js";
import { replaceFile } from "./replace-file.js";

/** Where docker's configuration is: `config.json` in `DOCKER_CONFIG`, or in `~/.docker`. */
export function dockerConfigFile(env: Readonly<Record<string, string | undefined>> = process.env): string {
  return join(env.DOCKER_CONFIG || join(homedir(), ".docker"), "config.json");
}

/**
 * Has docker ask `docker-credential-<helper>` for the credentials of a registry. All else in the file,
 * and its permissions, stay; it is made where there is none.
 *
 * @param host the registry's host, with the port where one is given
 * @returns the helper that was asked before; undefined for none
 * @throws ConnectError FAILED_PRECONDITION when the file holds no JSON object, and is left alone
 */
export async function setCredentialHelper(file: string, host: string, helper: string): Promise<string | undefined> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  // What a link leads to is changed, not the link.
  const target = await realpath(file).catch(() => file);
  const mode = await stat(target).then(
    (found) => found.mode & 0o777,
    () => undefined,
  );
  const config = mode === undefined ? {} : objectIn(await readFile(target, "utf8"), file);
  const { credHelpers = {} } = config;
  if (!isObject(credHelpers)) throw notDockers(file);
  const before = credHelpers[host];
  if (before !== helper) {
    const text = JSON.stringify({ ...config, credHelpers: { ...credHelpers, [host]: helper } }, null, "\t");
    await replaceFile(target, `${text}\n`, mode ?? 0o600);
  }
  return typeof before === "string" ? before : undefined;
}

function objectIn(text: string, file: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = text.trim() === "" ? {} : JSON.parse(text);
  } catch {
    // The error of the parser would repeat a part of the file, which may hold passwords.
    throw notDockers(file);
  }
  if (!isObject(value)) throw notDockers(file);
  return value;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function notDockers(file: string) {
  return failure(Code.FailedPrecondition, `${file} is no configuration of docker, so it was left as it is`);
}
