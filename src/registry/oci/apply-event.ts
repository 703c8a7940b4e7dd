// Applies the events of a registry to the store, each event once.
import { type Change, formatBody } from "../../kernel/audit-body.js";
import type { Ids } from "../../kernel/ids.js";
import { isUidp, rootOf } from "../../kernel/uidp.js";
import { describeChange } from "../../pipeline/body.js";
import type { AuditRow } from "../../store/tables/audit.js";
import type { RepoRow, TagRow } from "../../store/tables/registry.js";
import type { Tx } from "../../store/transaction.js";
import { ensureRepo, repoToProto } from "../repos/repo.js";
import { repoView } from "../repos/repo-v2beta1.js";
import { removeTag, tagToProto, tagView, upsertTag } from "../tags/tag.js";
import type { RegistryEvent } from "./notification.js";
import { locateRepo, parseRepoPath } from "./repo-path.js";

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
  let dropped = 0;
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
    for (const change of await applyEvent(tx, repo.uid, bounded, ids)) recordTag(change, trace, rows);
  }
  // The store requires that a unit of work writes its audit rows last.
  for (const row of rows) await tx.audit.append(row);
  return { changed: rows.length, dropped };
}

/** Finds the repo of a path or creates it; adds its creation to the audit `rows`. */
export async function ensureAuditedRepo(
  tx: Tx,
  groupUid: string,
  name: string,
  { ids, nowMs, trace, rows }: { ids: Ids; nowMs: number; trace: AuditContext; rows: AuditRow[] },
): Promise<RepoRow> {
  const known = await tx.repos.findByName(groupUid, name);
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
  return { rootUid: rootOf(subjectUid), type, subjectUid, tokenId: "", body: formatBody(change), ...trace };
}

// Applies events of tags that arrive in any order, repeatedly, or late. The last writer wins: a mark keeps the
// time of the last event of each tag and of each deleted manifest, also after the tag is deleted. A digest has a
// colon and a tag has none, so their marks never collide.

/** The number of tags on one page. */
const PAGE = 200;

/** That a tag points to a manifest from a time on. */
interface TagPush {
  readonly repoUid: string;
  readonly name: string;
  readonly digest: string;
  /** In epoch milliseconds. */
  readonly timeMs: number;
}

/** The change of a tag: its row before, and after a push. Undefined where nothing changed. */
type TagChange =
  | { readonly before: TagRow | undefined; readonly after: TagRow }
  | { readonly before: TagRow; readonly after?: undefined }
  | undefined;

/**
 * Applies the push of a tag. An event that is older than the last one changes nothing. In the same millisecond
 * a push wins over a deletion, and the greater digest over the other, in any order of arrival.
 */
export async function applyTagPush(tx: Tx, push: TagPush, ids: Ids): Promise<TagChange> {
  const { repoUid, name, digest, timeMs } = push;
  const row = await tx.tags.findByName(repoUid, name);
  const knownMs = await findLastEventMs(tx, repoUid, name, row);
  if (timeMs < knownMs || (timeMs === knownMs && row !== undefined && row.digest >= digest)) return undefined;
  await tx.tags.putMark(repoUid, name, timeMs);
  if (((await tx.tags.findMark(repoUid, digest)) ?? 0) > timeMs) return toRemoval(await removeTag(tx, repoUid, name));
  const tag = await upsertTag(tx, { repoUid, name, digest, nowMs: timeMs, ids });
  return row?.digest === digest ? undefined : { before: row, after: tag };
}

/** Applies the deletion of a tag. An event that is older than the last one changes nothing. */
export async function applyTagDeletion(tx: Tx, repoUid: string, name: string, timeMs: number): Promise<TagChange> {
  const row = await tx.tags.findByName(repoUid, name);
  const knownMs = await findLastEventMs(tx, repoUid, name, row);
  if (timeMs < knownMs || (timeMs === knownMs && row !== undefined)) return undefined;
  await tx.tags.putMark(repoUid, name, timeMs);
  return toRemoval(await removeTag(tx, repoUid, name));
}

/** Applies the deletion of a manifest, which deletes every tag that pointed to it before. */
async function applyManifestDeletion(tx: Tx, repoUid: string, digest: string, timeMs: number): Promise<TagChange[]> {
  if (((await tx.tags.findMark(repoUid, digest)) ?? -1) >= timeMs) return [];
  await tx.tags.putMark(repoUid, digest, timeMs);
  const changes: TagChange[] = [];
  const query = {
    visible: [repoUid],
    filter: { equals: { digest } },
    order: { field: "uid", descending: false },
    skip: 0,
    limit: PAGE,
  };
  let page = await tx.tags.listAll(query);
  for (;;) {
    for (const row of page.rows) {
      const knownMs = await findLastEventMs(tx, repoUid, row.name, row);
      if (knownMs >= timeMs) continue;
      // The mark keeps the old time, because a push before the deletion may still arrive.
      await tx.tags.putMark(repoUid, row.name, knownMs);
      changes.push(toRemoval(await removeTag(tx, repoUid, row.name)));
    }
    if (page.next === undefined) return changes;
    page = await tx.tags.listAll({ ...query, after: page.next });
  }
}

// Changes by the API set no marks, so the row counts as well.
async function findLastEventMs(tx: Tx, repoUid: string, name: string, row: TagRow | undefined): Promise<number> {
  return Math.max((await tx.tags.findMark(repoUid, name)) ?? -1, row?.updateTimeMs ?? -1);
}

function toRemoval(tag: TagRow | undefined): TagChange {
  return tag && { before: tag };
}
