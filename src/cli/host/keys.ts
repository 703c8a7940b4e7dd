// `arbor admin keys`. Running servers see the changes with the next call.
import type { Settings } from "../../config/config.js";
import { auditOnHost } from "../../iam/operator/operate.js";
import { generateKey, generateTokenKey, resealKeyForStore } from "../../issuer/keys/key-generation.js";
import { addSuccessor, revokeKey, rotateKey, rotateRegistryKey, type Successor } from "../../issuer/keys/key-states.js";
import { randomIds } from "../../kernel/ids.js";
import type { KeyPurpose, KeyRow } from "../../store/tables/tokens.js";
import type { Tx } from "../../store/transaction.js";
import { confirm } from "../output/confirm.js";
import type { ListColumn } from "../output/format.js";
import { formatTime } from "../output/time.js";
import { createColumn } from "../remote/iam/columns.js";
import { NOT_REVOKED, print, withInstallation } from "./host.js";
import { type HostListFlags, printRows } from "./list.js";

const WHEN_USED = "servers use it once they have published it for as long as others keep keys (--jwks-max-age)";

const BEFORE_THE_NEXT =
  "servers use it at once; before the next rotation, run arbor registry configure and restart the registry";

/** `arbor admin keys rotate`: prints the kid of the new key and, on standard error, when it will be used. */
export async function rotateCommand(
  settings: Settings,
  { purpose, json = false }: { purpose: KeyPurpose; json?: boolean },
): Promise<void> {
  await withInstallation(settings, "update", async ({ store, keys, masterKey, clock }) => {
    const nowMs = clock();
    const key = await (purpose === "api-token"
      ? generateTokenKey(keys.tokenAlgorithm(), masterKey, nowMs)
      : generateKey(purpose, masterKey, nowMs));
    const { kid, isNew } = await store.write(async (tx) => {
      const next = await rotate(tx, await resealKeyForStore(tx, masterKey, key));
      const change = { type: ROTATED, after: { kid: next.kid, purpose } };
      if (next.isNew) await auditOnHost(tx, { type: ROTATED, subjectUid: "", change }, { nowMs, ids: randomIds });
      return next;
    });
    print(json ? JSON.stringify({ kid, purpose, isNew }) : kid);
    if (!isNew) process.stderr.write("arbor: a rotation is under way already, and this is its key\n");
    if (purpose === "api-token") process.stderr.write(`arbor: ${WHEN_USED}\n`);
    if (purpose === "registry") process.stderr.write(`arbor: ${BEFORE_THE_NEXT}\n`);
  });
}

// The types of these events, and of their bodies.
const ROTATED = "arbor.key.rotated.v1";
const REVOKED = "arbor.key.revoked.v1";

// Verifiers cache the public keys of API tokens, so a new key is published before it signs.
async function rotate(tx: Tx, key: KeyRow): Promise<Successor> {
  if (key.purpose === "api-token") return addSuccessor(tx, key);
  if (key.purpose === "registry") return rotateRegistryKey(tx, key);
  await rotateKey(tx, key);
  return { kid: key.kid, isNew: true };
}

/**
 * `arbor admin keys revoke`: prints the former state of the key, and who may still trust it.
 *
 * @throws ApiError NOT_FOUND; FAILED_PRECONDITION for a key with another purpose than API tokens.
 */
export async function revokeCommand(
  settings: Settings,
  kid: string,
  { yes = false }: { readonly yes?: boolean },
): Promise<void> {
  await withInstallation(settings, "update", async ({ store, keys, masterKey, clock }) => {
    if (!yes) {
      const question = `Revoke key ${kid}, and so all tokens that it has signed?`;
      await confirm(question, undefined, NOT_REVOKED);
    }
    const nowMs = clock();
    const spare = await generateTokenKey(keys.tokenAlgorithm(), masterKey, nowMs);
    const { state, replaced } = await store.write(async (tx) => {
      const revocation = await revokeKey(tx, kid, await resealKeyForStore(tx, masterKey, spare));
      const change = { type: REVOKED, before: { kid, state: revocation.state } };
      await auditOnHost(tx, { type: REVOKED, subjectUid: "", change }, { nowMs, ids: randomIds });
      return revocation;
    });
    print(`${kid} is removed; it was ${state}`);
    if (replaced) print(`${spare.kid} is new and signs API tokens at once`);
    print("running servers refuse what the removed key signed, from now on");
    const kept = `up to ${settings.jwksMaxAge} s (--jwks-max-age)`;
    print(`others may trust it${replaced ? ", and not know the new one," : ""} for as long as they keep keys: ${kept}`);
  });
}

/** `arbor admin keys list`: the newest first. */
export async function listCommand(settings: Settings, flags: HostListFlags): Promise<void> {
  await withInstallation(settings, "read", async ({ store }) => {
    printRows([...(await store.read((tx) => tx.keys.list()))].reverse().map(toJson), keyColumns, flags);
  });
}

/** The columns of `arbor admin keys list`. */
export const keyColumns: readonly ListColumn[] = [
  createColumn("PURPOSE", "purpose"),
  createColumn("STATE", "state"),
  createColumn("CREATED", "createTime"),
  createColumn("NEXT", "nextTime"),
  createColumn("KID", "kid", "uid"),
];

function toJson({ kid, purpose, state, createTimeMs, nextTimeMs }: KeyRow) {
  const nextTime = nextTimeMs === null ? null : formatTime(nextTimeMs);
  return { kid, purpose, state, createTime: formatTime(createTimeMs), nextTime };
}
