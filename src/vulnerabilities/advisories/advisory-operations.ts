// The only way advisories and their events are written: what lists look through
// is kept right here.
import { ReviewState } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { notFound } from "../../kernel/errors.js";
import type { AdvisoryEventRow, AdvisoryRow, Tx } from "../../store/port.js";
import { advisories } from "./advisory.js";
import { advisoryIdOf } from "./advisory-id.js";
import { searchedOf } from "./filters.js";

/** An advisory without what is worked out from the rest. */
export type AdvisoryInput = Omit<AdvisoryRow, "advisoryId" | "searched" | "latestEventType">;

/**
 * Stores a new advisory with its events, and returns it.
 *
 * @param seed what its id is derived from; the same seed gives the same id in every group
 */
export async function insertAdvisory(
  tx: Tx,
  advisory: AdvisoryInput,
  seed: string,
  events: readonly AdvisoryEventRow[] = [],
): Promise<AdvisoryRow> {
  const row: AdvisoryRow = {
    ...advisory,
    ...derived(advisory, events),
    advisoryId: await freeId(tx, advisory.groupUid, seed),
  };
  await tx.advisories.insert(row);
  for (const event of events) await tx.advisories.putEvent(event);
  return row;
}

/**
 * Makes a stored advisory equal to `advisory`, apart from its id and creation time, and returns it.
 *
 * @param events what its events become; absent: they stay as they are
 * @throws ApiError NOT_FOUND when there is no such advisory.
 */
export async function replaceAdvisory(
  tx: Tx,
  advisory: AdvisoryInput,
  events?: readonly AdvisoryEventRow[],
): Promise<AdvisoryRow> {
  const before = await tx.advisories.get(advisory.uid);
  if (before === undefined) throw notFound(advisories, advisory.uid);
  const { advisoryId, createTimeMs } = before;
  const all = events ?? (await tx.advisories.events([advisory.uid]));
  const row: AdvisoryRow = { ...advisory, ...derived(advisory, all), advisoryId, createTimeMs };
  await tx.advisories.replace(row);
  if (events) {
    await tx.advisories.deleteEvents(row.uid);
    for (const event of events) await tx.advisories.putEvent(event);
  }
  return row;
}

/**
 * Stores an event, new or changed, and returns its advisory, which changes with it.
 *
 * @throws ApiError NOT_FOUND when there is no such advisory.
 */
export async function putEvent(tx: Tx, event: AdvisoryEventRow): Promise<AdvisoryRow> {
  const before = await tx.advisories.get(event.advisoryUid);
  if (before === undefined) throw notFound(advisories, event.advisoryUid);
  await tx.advisories.putEvent(event);
  const updateTimeMs = Math.max(before.updateTimeMs, event.updateTimeMs);
  return replaceAdvisory(tx, { ...before, updateTimeMs });
}

function derived(advisory: AdvisoryInput, events: readonly AdvisoryEventRow[]) {
  const { artifactName, componentName, aliases } = advisory;
  return { searched: searchedOf([artifactName, componentName, ...aliases]), latestEventType: latestOf(events) };
}

// Events of one moment are in the order of their uids, as they are shown.
function latestOf(events: readonly AdvisoryEventRow[]): number {
  let latest: AdvisoryEventRow | undefined;
  for (const event of events) {
    if (event.reviewState === ReviewState.APPROVED && (latest === undefined || isAfter(event, latest))) latest = event;
  }
  return latest?.type ?? 0;
}

function isAfter(a: AdvisoryEventRow, b: AdvisoryEventRow): boolean {
  return a.createTimeMs === b.createTimeMs ? a.uid > b.uid : a.createTimeMs > b.createTimeMs;
}

async function freeId(tx: Tx, groupUid: string, seed: string): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const advisoryId = advisoryIdOf(seed, attempt);
    const filter = { childrenOf: groupUid, equals: { advisoryId } };
    const order = { field: "uid", descending: false };
    const { total } = await tx.advisories.list({ visible: [groupUid], filter, order, skip: 0, limit: 1 });
    if (total === 0) return advisoryId;
  }
}
