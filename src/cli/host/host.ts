// Commands on the data of an installation. Access to the data is their only credential, and each writes an audit row.
import type { JsonObject } from "@bufbuild/protobuf";
import { type Installation, type InstallationMode, nameDiskFault, openInstallation } from "../../app/installation.js";
import type { Settings } from "../../config/config.js";
import { resolveOrigin } from "../../config/origin.js";
import { identities } from "../../iam/identities/identity.js";
import { resolveName } from "../../iam/operator/names.js";
import {
  auditOnHost,
  bindIdentity,
  type HostBinding,
  type RegistryNameOptions,
  revokeTokens,
  showBinding,
  unbindIdentity,
  verifyGroup,
} from "../../iam/operator/operate.js";
import { issueToken, readIssueDate } from "../../issuer/tokens.js";
import { notFound } from "../../kernel/errors.js";
import { randomIds } from "../../kernel/ids.js";
import { identityKind } from "../../store/iam/identities.js";
import type { Tx } from "../../store/transaction.js";
import { invalidFlag } from "../errors.js";
import { confirm, confirmDelete } from "../output/confirm.js";
import { describeRow, formatNamed } from "../output/describe.js";
import { createMigrationProgress } from "./progress.js";

/** An hour, in seconds. */
export const HOUR_S = 3600;

/** The type of the event, and of its body. */
const TOKEN_ISSUED = "arbor.token.issued.v1";

/** `arbor admin token` */
export async function tokenCommand(
  settings: Settings,
  { identity: name, ttl, audience }: { identity: string; ttl: string; audience?: string },
): Promise<void> {
  const lifeS = parseDurationS(ttl);
  await withInstallation(settings, "update", async (host) => {
    const nowMs = host.clock();
    const identity = await host.store.read((tx) => resolveName(tx, "identity", name, "identity"));
    const issueDate = await host.store.write(async (tx) => {
      if ((await tx.table(identityKind).find(identity)) === undefined) throw notFound(identities, identity);
      const change = { type: TOKEN_ISSUED, after: { audience: audience ?? "", lifeSeconds: lifeS } };
      await auditOnHost(tx, { type: TOKEN_ISSUED, subjectUid: identity, change }, { nowMs, ids: randomIds });
      return readIssueDate(tx, identity, nowMs);
    });
    const { baseUrl, issuer } = await readOrigin(host, settings);
    const request = { issuer, audience: audience ?? baseUrl, identity, lifeS, ...issueDate };
    print(await issueToken(request, host.keys, randomIds));
  });
}

/** `arbor admin bind` */
export async function bindCommand(
  settings: Settings,
  { json = false, ...binding }: HostBinding & { json?: boolean },
): Promise<void> {
  await withInstallation(settings, "update", async (host) => {
    const uids = await host.store.read(async (tx) => ({
      identity: await resolveName(tx, "identity", binding.identity, "identity"),
      role: await resolveName(tx, "role", binding.role, "role"),
      group: await resolveName(tx, "group", binding.group, "group"),
    }));
    const context = { ids: randomIds, nowMs: host.clock() };
    const uid = await host.store.write((tx) => bindIdentity(tx, { ...binding, ...uids }, context));
    const { identity: identityUid, role: roleUid, group: groupUid } = uids;
    print(json ? JSON.stringify({ uid, identityUid, roleUid, groupUid }) : uid);
  });
}

/** `arbor admin unbind` */
export async function unbindCommand(
  settings: Settings,
  uid: string,
  { yes = false }: { readonly yes?: boolean },
): Promise<void> {
  await withInstallation(settings, "update", async (host) => {
    if (!yes)
      await confirmDelete(
        formatNamed("role binding", describeRow(await host.store.read((tx) => readBinding(tx, uid))), uid),
      );
    await host.store.write((tx) => unbindIdentity(tx, uid, { ids: randomIds, nowMs: host.clock() }));
  });
}

async function readBinding(tx: Tx, uid: string): Promise<JsonObject> {
  const { identity, role, group } = await showBinding(tx, uid);
  const { email = "", name = "" } = identity ?? {};
  return {
    identity: { email: email || name },
    ...(role && { role: { name: role.name } }),
    ...(group && { group: { name: group.name } }),
  };
}

/** What commands that revoke say when the person does not confirm it. */
export const NOT_REVOKED = "nothing was revoked";

/** `arbor admin identities revoke` */
export async function revokeCommand(
  settings: Settings,
  identity: string,
  { yes = false }: { readonly yes?: boolean },
): Promise<void> {
  await withInstallation(settings, "update", async ({ store, clock }) => {
    const { uid, row } = await store.read(async (tx) => {
      const uid = await resolveName(tx, "identity", identity, "uid");
      return { uid, row: await tx.table(identityKind).find(uid) };
    });
    if (row === undefined) throw notFound(identities, uid);
    if (!yes) {
      const name = describeRow({ name: row.name, email: row.email });
      await confirm(`Revoke all tokens and logins of ${formatNamed("identity", name, uid)}?`, undefined, NOT_REVOKED);
    }
    await store.write((tx) => revokeTokens(tx, uid, { ids: randomIds, nowMs: clock() }));
  });
}

/** `arbor admin groups verify` */
export async function verifyCommand(
  settings: Settings,
  group: string,
  { kind, ...options }: RegistryNameOptions & { kind?: string },
): Promise<void> {
  await withInstallation(settings, "update", async (host) => {
    const context = { ids: randomIds, nowMs: host.clock() };
    const uid = await host.store.read((tx) => resolveName(tx, "group", group, "uid"));
    const name = await host.store.write((tx) => verifyGroup(tx, uid, kind, context, options));
    if (name === undefined) return;
    const moved = `arbor: \`arbor registry move\` brings what was pushed under ${uid} to ${name}`;
    process.stderr.write(`arbor: images are pushed and pulled as ${name}/REPO from now on\n${moved}\n`);
  });
}

/**
 * Opens the installation of `settings` for `work`, and closes it afterwards.
 *
 * @throws ApiError FAILED_PRECONDITION when there is none and `mode` does not create it
 */
export async function withInstallation(
  settings: Settings,
  mode: InstallationMode,
  work: (host: Installation) => Promise<void>,
): Promise<void> {
  const { onProgress, clear } = createMigrationProgress(process.stderr);
  const host = await openInstallation({ settings, mode, onMigration: onProgress }).finally(clear);
  try {
    await nameDiskFault(settings, () => work(host));
  } finally {
    await host.close();
  }
}

/** Reads the base URL and the issuer of the service from the settings, or else as the last server stored them. */
export async function readOrigin(host: Installation, settings: Settings): Promise<{ baseUrl: string; issuer: string }> {
  const fromSettings = resolveOrigin(settings);
  const stored = await host.store.read((tx) => tx.settings.find("origin"));
  const origin = stored === undefined ? fromSettings : (JSON.parse(stored) as { baseUrl: string; issuer: string });
  return {
    baseUrl: settings.baseUrl ?? origin.baseUrl,
    issuer: settings.issuer ?? settings.baseUrl ?? origin.issuer,
  };
}

function parseDurationS(ttl: string): number {
  const match = /^(\d{1,6})(s|m|h)$/.exec(ttl);
  const seconds = Number(match?.[1]) * { s: 1, m: 60, h: HOUR_S }[(match?.[2] ?? "s") as "s" | "m" | "h"];
  if (match && seconds > 0 && seconds <= HOUR_S) return seconds;
  throw invalidFlag("--ttl", "must be a number of s, m or h, more than 0 and at most 1h");
}

/** Writes a line to standard output. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
