// Applies the events of a registry to the store, each event once.
import { type Change, formatBody, type JsonFields, REGISTRY_PUSH } from "../../kernel/audit-body.js";
import type { Ids } from "../../kernel/ids.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import { describeChange } from "../../pipeline/body.js";
import { type RepoRow, repoKind } from "../../store/registry/repos.js";
import type { AuditRow } from "../../store/tables/audit.js";
import type { Tx } from "../../store/transaction.js";
import { ensureRepo, repoToProto } from "../repos/repo.js";
import { repoView } from "../repos/repo-v2beta1.js";
import { tagToProto, tagView } from "../tags/tag.js";
import type { RegistryEvent } from "./notification.js";
import { locateRepo, parseRepoPath } from "./repo-path.js";
import { applyManifestDeletion, applyTagDeletion, applyTagPush, type TagChange } from "./tag-events.js";

interface ApplyResult {
  /** The number of repos and tags that changed. */
  readonly changed: number;
  /** The number of events of repos that belong to no group, or were moved from the path of the event. */
  readonly dropped: number;
}

/** The source of events, for the audit log. */
interface EventSource {
  readonly method: string;
  readonly remoteAddress: string;
}

/** The actor and the time of a change, for the audit log. */
export interface AuditContext extends EventSource {
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
 * Applies new events, with a row in the audit log for every change. The same events in any order and with any
 * repetition leave the same tags.
 *
 * @param nowMs epoch milliseconds. A later time of an event counts as now, because a wrong clock of the registry
 * would otherwise block later events for years
 */
export async function applyEvents(
  tx: Tx,
  events: readonly RegistryEvent[],
  { ids, nowMs, source }: { readonly ids: Ids; readonly nowMs: number; readonly source: EventSource },
): Promise<ApplyResult> {
  const rows: AuditRow[] = [];
  let [dropped, pushed] = [0, 0];
  for (const event of events) {
    const path = parseRepoPath(event.path);
    const location = path && (await locateRepo(tx, path));
    if (path === undefined || location === undefined || location.uidPath === "moved") {
      dropped++;
      continue;
    }
    if (!(await tx.registry.recordEvent(event.id, nowMs))) continue;
    const actorUid = isUidp(event.actor) ? event.actor : "";
    const trace: AuditContext = { ...source, actorUid, requestId: event.id, timeMs: nowMs };
    const repo = await ensureAuditedRepo(tx, location.groupUid, path.repo, { ids, nowMs, trace, rows });
    const bounded = { ...event, timeMs: Math.min(event.timeMs, nowMs) };
    const changes = await applyEvent(tx, repo.uid, bounded, ids);
    for (const change of changes) recordTag(change, trace, rows);
    if (event.action !== "push") continue;
    pushed++;
    const body = { type: REGISTRY_PUSH, after: describePush(bounded, repo, changes[0]?.before?.digest) };
    rows.push(buildAuditRow(REGISTRY_PUSH, repo.uid, trace, body));
  }
  // The store requires that a unit of work writes its audit rows last.
  for (const row of rows) await tx.audit.append(row);
  return { changed: rows.length - pushed, dropped };
}

// In the names of the published event. What is not known is left out.
function describePush(
  { path, tag, digest, timeMs, request }: RegistryEvent,
  repo: RepoRow,
  previousDigest: string | undefined,
): JsonFields {
  const told = {
    method: request.method,
    remote_address: request.remoteAddress,
    user_agent: request.userAgent,
    tag,
    tag_previous_digest: previousDigest ?? "",
  };
  return {
    ...{ repository: path, repo_id: repo.uid, display_name: repo.name, digest },
    ...{ type: "manifest", when: new Date(timeMs).toISOString() },
    ...Object.fromEntries(Object.entries(told).filter(([, value]) => value !== "")),
  };
}

/** Finds the repo of a path or creates it; adds its creation to the audit `rows`. */
export async function ensureAuditedRepo(
  tx: Tx,
  groupUid: string,
  name: string,
  { ids, nowMs, trace, rows }: { ids: Ids; nowMs: number; trace: AuditContext; rows: AuditRow[] },
): Promise<RepoRow> {
  const known = await tx.table(repoKind).findByName(groupUid, name);
  if (known !== undefined) return known;
  const repo = await ensureRepo(tx, groupUid, name, { ids, nowMs });
  rows.push(buildAuditRow(TYPES.repo, repo.uid, trace, describeChange(repoView, { after: repoToProto(repo) })));
  return repo;
}

/** Adds the change of a tag to the audit `rows`. */
export function recordTag(change: TagChange, trace: AuditContext, rows: AuditRow[]): void {
  if (change === undefined) return;
  const { before, after } = change;
  const shown = describeChange(tagView, {
    before: before && tagToProto(before),
    after: after && tagToProto(after),
  });
  rows.push(buildAuditRow(after ? TYPES.put : TYPES.removed, (after ?? before).uid, trace, shown));
}

async function applyEvent(tx: Tx, repoUid: string, event: RegistryEvent, ids: Ids): Promise<readonly TagChange[]> {
  const { action, tag: name, digest, timeMs } = event;
  if (action === "push") return name === "" ? [] : [await applyTagPush(tx, { repoUid, name, digest, timeMs }, ids)];
  if (name !== "") return [await applyTagDeletion(tx, repoUid, name, timeMs)];
  return digest === "" ? [] : applyManifestDeletion(tx, repoUid, digest, timeMs);
}

function buildAuditRow(type: string, subjectUid: string, trace: AuditContext, change: Change): AuditRow {
  return { rootUid: rootOf(subjectUid), type, subjectUid, tokenId: "", body: formatBody(change, type), ...trace };
}
