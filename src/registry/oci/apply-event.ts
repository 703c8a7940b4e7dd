// Puts what a registry tells into the store, each event once.
import type { Ids } from "../../kernel/ids.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import type { AuditRow, RepoRow, Tx } from "../../store/port.js";
import { ensureRepo } from "../repos/repo-operations.js";
import type { RegistryEvent } from "./notification.js";
import { groupOfOrg, parseRepoPath } from "./repo-path.js";
import { manifestDeleted, type Outcome, tagDeleted, tagPushed } from "./tag-news.js";

/** What came of a number of events. */
export interface Applied {
  /** How many repos and tags changed. */
  readonly changed: number;
  /** How many events concern nothing that is known here. */
  readonly dropped: number;
}

/** Where the events come from, as the audit log has it. */
export interface EventSource {
  readonly method: string;
  readonly remoteAddress: string;
}

/** Who changed something and when, as the audit log has it. */
export interface Trace extends EventSource {
  readonly actorUid: string;
  readonly requestId: string;
  /** In epoch milliseconds. */
  readonly timeMs: number;
}

const TYPES = {
  repo: "dev.chainguard.api.platform.registry.repo.created.v1",
  put: "dev.chainguard.api.platform.registry.tag.created.v1",
  removed: "dev.chainguard.api.platform.registry.tag.deleted.v1",
} as const;

/**
 * Applies events that are not known yet, with a row in the audit log for every change. Any order and
 * repetition of the same events leaves the same tags.
 *
 * @param nowMs epoch milliseconds; what is said to happen later is taken to happen now, lest a wrong
 * clock shut out for years what is true
 */
export async function applyEvents(
  tx: Tx,
  events: readonly RegistryEvent[],
  { ids, nowMs, source }: { readonly ids: Ids; readonly nowMs: number; readonly source: EventSource },
): Promise<Applied> {
  const rows: AuditRow[] = [];
  let dropped = 0;
  for (const event of events) {
    const place = parseRepoPath(event.path);
    const group = place && (await groupOfOrg(tx, place.org));
    if (place === undefined || group === undefined) {
      dropped++;
      continue;
    }
    if (!(await tx.registry.see(event.id, nowMs))) continue;
    const actorUid = isUidp(event.actor) ? event.actor : "";
    const trace: Trace = { ...source, actorUid, requestId: event.id, timeMs: nowMs };
    const repo = await repoFor(tx, group, place.repo, { ids, nowMs, trace, rows });
    for (const outcome of await outcomesOf(tx, repo.uid, { ...event, timeMs: Math.min(event.timeMs, nowMs) }, ids))
      recordTag(outcome, trace, rows);
  }
  // Last, so that the rows become visible in the order of their numbers.
  for (const row of rows) await tx.audit.append(row);
  return { changed: rows.length, dropped };
}

/** The repo that the registry has, made where it is not known yet; adds to the audit `rows`. */
export async function repoFor(
  tx: Tx,
  groupUid: string,
  name: string,
  { ids, nowMs, trace, rows }: { ids: Ids; nowMs: number; trace: Trace; rows: AuditRow[] },
): Promise<RepoRow> {
  const known = await tx.repos.named(groupUid, name);
  if (known !== undefined) return known;
  const repo = await ensureRepo(tx, groupUid, name, { ids, nowMs });
  rows.push(auditRow(TYPES.repo, repo.uid, trace));
  return repo;
}

/** Adds what became of a tag to the audit `rows`. */
export function recordTag(outcome: Outcome, trace: Trace, rows: AuditRow[]): void {
  if (outcome !== undefined) rows.push(auditRow(TYPES[outcome.change], outcome.tag.uid, trace));
}

async function outcomesOf(tx: Tx, repoUid: string, event: RegistryEvent, ids: Ids): Promise<readonly Outcome[]> {
  const { action, tag: name, digest, timeMs } = event;
  if (action === "push") return name === "" ? [] : [await tagPushed(tx, { repoUid, name, digest, timeMs }, ids)];
  if (name !== "") return [await tagDeleted(tx, repoUid, name, timeMs)];
  return digest === "" ? [] : manifestDeleted(tx, repoUid, digest, timeMs);
}

function auditRow(type: string, subjectUid: string, trace: Trace): AuditRow {
  return { rootUid: rootOf(subjectUid), type, subjectUid, tokenId: "", ...trace };
}
