// Commands on the data of an installation. Access to the data is their only credential, and each writes an audit row.
import { type Installation, type InstallationMode, nameDiskFault, openInstallation } from "../../app/installation.js";
import { resolveOrigin, type Settings } from "../../config/config.js";
import { identities } from "../../iam/identities/identity.js";
import { bootstrap } from "../../iam/operator/bootstrap.js";
import {
  auditOnHost,
  bindIdentity,
  type HostBinding,
  type RegistryNameOptions,
  revokeTokens,
  unbindIdentity,
  verifyGroup,
} from "../../iam/operator/operate.js";
import { issueToken } from "../../issuer/tokens.js";
import { invalidArgument, notFound } from "../../kernel/errors.js";
import { randomIds } from "../../kernel/ids.js";
import type { MigrationProgress } from "../../store/migrate/phases.js";
import { createProgressLine, type ProgressStream } from "../output/terminal.js";

const HOUR_S = 3600;

/** `arbor bootstrap` */
export async function bootstrapCommand(
  settings: Settings,
  options: { org: string; ownerIssuer?: string; ownerSubject?: string; json?: boolean },
): Promise<void> {
  const { org, ownerIssuer: issuer, ownerSubject: subject } = options;
  if ((issuer === undefined) !== (subject === undefined)) {
    throw invalidArgument({ field: "owner", subject: "", rule: "--owner-issuer and --owner-subject go together" });
  }
  await withInstallation(settings, "create", async (host) => {
    const owner = issuer !== undefined && subject !== undefined ? { owner: { issuer, subject } } : {};
    const created = await host.store.write((tx) => bootstrap(tx, { org, ...owner }, randomIds, host.clock()));
    const { baseUrl, issuer: hostIssuer } = await readOrigin(host, settings);
    const token = await issueToken(
      { issuer: hostIssuer, audience: baseUrl, identity: created.identity, lifeS: HOUR_S, nowMs: host.clock() },
      host.keys,
      randomIds,
    );
    const result = { ...created, token };
    if (options.json) print(JSON.stringify(result));
    else for (const [name, value] of Object.entries(result)) print(`${name}: ${value}`);
  });
}

/** The type of the event, and of its body. */
const TOKEN_ISSUED = "arbor.token.issued.v1";

/** `arbor admin token` */
export async function tokenCommand(
  settings: Settings,
  { identity, ttl, audience }: { identity: string; ttl: string; audience?: string },
): Promise<void> {
  const lifeS = parseDurationS(ttl);
  await withInstallation(settings, "update", async (host) => {
    const nowMs = host.clock();
    await host.store.write(async (tx) => {
      if ((await tx.identities.find(identity)) === undefined) throw notFound(identities, identity);
      const change = { type: TOKEN_ISSUED, after: { audience: audience ?? "", lifeSeconds: lifeS } };
      await auditOnHost(tx, { type: TOKEN_ISSUED, subjectUid: identity, change }, { nowMs, ids: randomIds });
    });
    const { baseUrl, issuer } = await readOrigin(host, settings);
    print(await issueToken({ issuer, audience: audience ?? baseUrl, identity, lifeS, nowMs }, host.keys, randomIds));
  });
}

/** `arbor admin bind` */
export async function bindCommand(
  settings: Settings,
  { json = false, ...binding }: HostBinding & { json?: boolean },
): Promise<void> {
  await withInstallation(settings, "update", async (host) => {
    const uid = await host.store.write((tx) => bindIdentity(tx, binding, { ids: randomIds, nowMs: host.clock() }));
    const { identity: identityUid, role: roleUid, group: groupUid } = binding;
    print(json ? JSON.stringify({ uid, identityUid, roleUid, groupUid }) : uid);
  });
}

/** `arbor admin unbind` */
export async function unbindCommand(settings: Settings, uid: string): Promise<void> {
  await withInstallation(settings, "update", (host) =>
    host.store.write((tx) => unbindIdentity(tx, uid, { ids: randomIds, nowMs: host.clock() })),
  );
}

/** `arbor admin identity revoke` */
export async function revokeCommand(settings: Settings, uid: string): Promise<void> {
  await withInstallation(settings, "update", (host) =>
    host.store.write((tx) => revokeTokens(tx, uid, { ids: randomIds, nowMs: host.clock() })),
  );
}

/** `arbor admin group verify` */
export async function verifyCommand(
  settings: Settings,
  uid: string,
  { kind, ...options }: RegistryNameOptions & { kind?: string },
): Promise<void> {
  await withInstallation(settings, "update", async (host) => {
    const context = { ids: randomIds, nowMs: host.clock() };
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
  throw invalidArgument({ field: "ttl", rule: "must be a number of s, m or h, more than 0 and at most 1h" });
}

/** Writes a line to standard output. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

// The progress of long commands, such as `arbor migrate --expand`: a bar with a rate on a terminal, and a line every few
// seconds elsewhere.

const BAR_WIDTH = 20;

/**
 * Creates the progress of a command. Its `periodMs` says how often to report.
 *
 * @param unit the unit of `done` and `total`
 */
export function createMigrationProgress(stream: ProgressStream, unit = "rows") {
  const line = createProgressLine(stream);
  let first: (MigrationProgress & { startMs: number }) | undefined;
  return {
    periodMs: stream.isTTY ? 100 : 5_000,
    clear: line.clear,
    onProgress(progress: MigrationProgress): void {
      if (first?.name !== progress.name) first = { ...progress, startMs: performance.now() };
      const seconds = (performance.now() - first.startMs) / 1000;
      const rate = seconds > 0 ? (progress.done - first.done) / seconds : 0;
      line.show(formatProgress(progress, rate, progress.unit ?? unit));
    },
    onRemoval({ name, done }: Pick<MigrationProgress, "name" | "done">): void {
      line.show(`${name}: removed ${done} rows of the old form`);
    },
  };
}

/** Creates the progress of a command that reports each batch; it shows nothing unless `isShown`. */
export function createThrottledProgress(isShown: boolean) {
  const { onProgress, periodMs, clear } = createMigrationProgress(process.stderr);
  let shown = "";
  let shownMs = 0;
  return {
    clear,
    onProgress(progress: MigrationProgress): void {
      if (!isShown) return;
      const nowMs = performance.now();
      if (progress.name === shown && nowMs - shownMs < periodMs && progress.done < progress.total) return;
      shown = progress.name;
      shownMs = nowMs;
      onProgress(progress);
    },
  };
}

/**
 * Formats the progress of a migration.
 *
 * @param rate in units per second; 0 if unknown
 */
export function formatProgress({ name, done, total }: MigrationProgress, rate: number, unit = "rows"): string {
  // The total is an estimate.
  const share = total > 0 ? Math.min(done / total, 1) : 1;
  const filled = Math.round(share * BAR_WIDTH);
  const bar = "#".repeat(filled) + ".".repeat(BAR_WIDTH - filled);
  const left = rate > 0 ? `, ${Math.round(rate)} ${unit}/s, ${Math.ceil(Math.max(total - done, 0) / rate)} s left` : "";
  return `${name} [${bar}] ${Math.floor(share * 100)} %, ${done} of about ${total} ${unit}${left}`;
}
