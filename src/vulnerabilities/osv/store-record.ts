// Brings what is stored of an OSV record to what the record says now.
import type { Ids } from "../../kernel/ids.js";
import { parentOf } from "../../kernel/uidp.js";
import type { AdvisoryEventRow, AdvisoryRow, Tx } from "../../store/port.js";
import { eventRow } from "../advisories/advisory.js";
import { insertAdvisory, replaceAdvisory } from "../advisories/advisory-operations.js";
import { type MappedAdvisory, sourcePrefix, type TimedEvent } from "./mapping.js";

/** Where advisories go. */
export interface ImportPlace {
  readonly groupUid: string;
  readonly ids: Ids;
}

/** A record by its id, with its advisories. */
export interface MappedRecord {
  readonly id: string;
  readonly modifiedMs: number;
  readonly advisories: readonly MappedAdvisory[];
}

/** What became of advisories. */
export interface Outcomes {
  created: number;
  updated: number;
  /** Of packages that their record no longer names. */
  withdrawn: number;
  unchanged: number;
  /** Stored from a later state of the record, or changed since: they stay. */
  newer: number;
}

/** Outcomes of nothing so far. */
export function noOutcomes(): Outcomes {
  return { created: 0, updated: 0, withdrawn: 0, unchanged: 0, newer: 0 };
}

// Segments of the events of an import; others have random ones.
const OWN_EVENT = /\/000000000000[0-9a-f]{4}$/;
// More than any record has packages.
const MOST = 100_000;

/** What became of a record that needs no write; undefined where something is to be stored. */
export async function settled(tx: Tx, place: ImportPlace, record: MappedRecord): Promise<Outcomes | undefined> {
  const outcomes = noOutcomes();
  for (const { advisory } of record.advisories) {
    const before = await tx.advisories.fromSource(place.groupUid, advisory.sourceKey);
    const outcome = before && settledAs(before, advisory);
    if (outcome === undefined) return undefined;
    outcomes[outcome]++;
  }
  // Packages that a record no longer names go with the change of those it names, if there are any.
  const forsaken = record.advisories.length === 0 && (await orphansOf(tx, place, record)).length > 0;
  return forsaken ? undefined : outcomes;
}

function settledAs(before: AdvisoryRow, { sourceHash, updateTimeMs }: MappedAdvisory["advisory"]) {
  if (before.sourceHash === sourceHash) return "unchanged";
  return before.updateTimeMs > updateTimeMs ? "newer" : undefined;
}

/** Stores what has changed of a record, and adds to `outcomes` what that was. */
export async function storeRecord(tx: Tx, place: ImportPlace, record: MappedRecord, outcomes: Outcomes): Promise<void> {
  for (const mapped of record.advisories) outcomes[await storeAdvisory(tx, place, mapped)]++;
  for (const row of await orphansOf(tx, place, record)) {
    await replaceAdvisory(tx, {
      ...row,
      // If the package is named again, this is not what the record says.
      sourceHash: "",
      deleteTimeMs: record.modifiedMs,
      updateTimeMs: record.modifiedMs,
    });
    outcomes.withdrawn++;
  }
}

async function storeAdvisory(tx: Tx, { groupUid, ids }: ImportPlace, mapped: MappedAdvisory): Promise<keyof Outcomes> {
  const { advisory, events } = mapped;
  const before = await tx.advisories.fromSource(groupUid, advisory.sourceKey);
  if (before === undefined) {
    const uid = ids.newUid(groupUid);
    await insertAdvisory(tx, { ...advisory, uid, groupUid }, advisory.sourceKey, eventRows(uid, events));
    return "created";
  }
  const outcome = settledAs(before, advisory);
  if (outcome !== undefined) return outcome;
  const { uid } = before;
  const others = (await tx.advisories.events([uid])).filter((event) => !OWN_EVENT.test(event.uid));
  await replaceAdvisory(tx, { ...advisory, uid, groupUid }, [...others, ...eventRows(uid, events)]);
  return "updated";
}

// In the order of their uids, which decides between events of one moment.
function eventRows(advisoryUid: string, events: readonly TimedEvent[]): AdvisoryEventRow[] {
  return events.map(({ event, timeMs }, i) =>
    eventRow(advisoryUid, `${advisoryUid}/${i.toString(16).padStart(16, "0")}`, event, timeMs),
  );
}

async function orphansOf(tx: Tx, { groupUid }: ImportPlace, record: MappedRecord): Promise<AdvisoryRow[]> {
  const prefix = sourcePrefix(record.id);
  const named = new Set(record.advisories.map(({ advisory }) => advisory.sourceKey));
  const orphans: AdvisoryRow[] = [];
  for (const uid of await tx.advisories.uidsWhere("legacyAdvisoryId", record.id, MOST)) {
    if (parentOf(uid) !== groupUid) continue;
    const row = await tx.advisories.get(uid);
    if (row === undefined || named.has(row.sourceKey) || !row.sourceKey.startsWith(prefix)) continue;
    if (row.deleteTimeMs === null && row.updateTimeMs <= record.modifiedMs) orphans.push(row);
  }
  return orphans;
}
