// `arbor admin master-key`: replaces the key that encrypts secrets at rest, while servers run (docs/operations.md).
import { readFileSync, realpathSync } from "node:fs";
import { findMasterKeyFile, type Installation } from "../../app/installation.js";
import type { Settings } from "../../config/config.js";
import { auditOnHost } from "../../iam/operator/operate.js";
import { generateMasterKey, MASTER_KEY_CHECK } from "../../issuer/keys/master-key.js";
import { type ResealedCounts, resealAll } from "../../issuer/keys/master-key-rotation.js";
import { failedPrecondition } from "../../kernel/errors.js";
import { randomIds } from "../../kernel/ids.js";
import { confirm } from "../output/confirm.js";
import { replaceFile } from "../shared-file.js";
import { print, withInstallation } from "./host.js";

const BY_HAND =
  "give all nodes a file with the old key and, below it, a new one; then put the new key first in all files; then run this again";

/**
 * `arbor admin master-key rotate`: adds a new key, unless the file has an unused one, and encrypts everything again.
 * After an interruption, run it again.
 *
 * @throws ApiError FAILED_PRECONDITION when nodes may have files of their own
 * @throws Error when the file cannot be written, or something is encrypted with a key that it does not have
 */
export async function rotateCommand(
  settings: Settings,
  { sharedFile = false }: { sharedFile?: boolean },
): Promise<void> {
  const file = findMasterKeyFile(settings);
  await withInstallation(settings, "update", async (host) => {
    const { store, masterKey } = host;
    if (masterKey.size === 1) {
      if (settings.databaseUrl !== undefined && !sharedFile) {
        const rule =
          "nodes may have master key files of their own: with --shared-file they all read this one; otherwise";
        throw failedPrecondition("MASTER_KEY_FILE", `${rule} ${BY_HAND}`);
      }
      await addKey(file);
      masterKey.reload(await store.read((tx) => tx.settings.find(MASTER_KEY_CHECK)));
      printNote(`${file} has a new key, which comes first`);
    }
    printCounts(await reseal(host));
    print(
      masterKey.size === 1
        ? "everything is encrypted with the master key"
        : "everything is encrypted with the first key; arbor admin master-key retire removes the others from the file",
    );
  });
}

/**
 * `arbor admin master-key retire`: encrypts what still needs an old key again, and removes the old keys from the file.
 *
 * @throws Error when something is encrypted with a key that the file does not have, or the file cannot be written
 */
export async function retireCommand(settings: Settings, { yes = false }: { readonly yes?: boolean }): Promise<void> {
  const file = findMasterKeyFile(settings);
  await withInstallation(settings, "update", async (host) => {
    printCounts(await reseal(host));
    const [first, ...others] = readLines(file);
    if (others.length === 0) return print("the file has one key");
    const keys = `${others.length} old ${others.length === 1 ? "key" : "keys"}`;
    if (!yes) await confirm(`Remove ${keys} from ${file}? Backups from before the rotation still need them.`);
    await writeLines(file, [first ?? ""]);
    print(`removed from ${file}: ${others.length} ${others.length === 1 ? "key" : "keys"}`);
    printNote("keep the old key for as long as you keep backups that were made before the rotation");
  });
}

async function reseal({ store, masterKey, clock }: Installation): Promise<ResealedCounts> {
  const row = { type: "arbor.master-key.rotated.v1", subjectUid: "" };
  return resealAll(store, masterKey, (tx) => auditOnHost(tx, row, { nowMs: clock(), ids: randomIds }));
}

async function addKey(file: string): Promise<void> {
  await writeLines(file, [generateMasterKey(), ...readLines(file)]);
}

function readLines(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

async function writeLines(file: string, lines: readonly string[]): Promise<void> {
  try {
    // A symbolic link stays, and its target is replaced.
    await replaceFile(realpathSync(file), `${lines.join("\n")}\n`, 0o600);
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    throw new Error(`--master-key-file: cannot write ${file}: ${code}; ${BY_HAND}`, { cause: error });
  }
}

function printCounts({ keys, clientSecrets, logins }: ResealedCounts): void {
  print(`encrypted again: ${keys} keys, ${clientSecrets} client secrets, ${logins} logins`);
}

function printNote(text: string): void {
  process.stderr.write(`arbor: ${text}\n`);
}
