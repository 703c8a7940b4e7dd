// Every write of advisories and their events goes through these functions, which keep the columns for search and
// filters up to date.
import { ReviewState } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { sha256 } from "../../kernel/digest.js";
import { notFound } from "../../kernel/errors.js";
import { type AdvisoryRow, advisoryKind } from "../../store/advisories/advisories.js";
import type { AdvisoryEventRow } from "../../store/tables/advisories.js";
import type { Tx } from "../../store/transaction.js";
import { advisories } from "./advisory.js";

/** An advisory without its derived columns. */
export type AdvisoryInput = Omit<AdvisoryRow, "advisoryId" | "searched" | "latestEventType">;

/**
 * Stores a new advisory with its events, and returns it.
 *
 * @param seed the text that its id is derived from; the same seed gives the same id in every group
 */
export async function insertAdvisory(
  tx: Tx,
  advisory: AdvisoryInput,
  seed: string,
  events: readonly AdvisoryEventRow[] = [],
): Promise<AdvisoryRow> {
  const row: AdvisoryRow = {
    ...advisory,
    ...deriveColumns(advisory, events),
    advisoryId: await findFreeId(tx, advisory.groupUid, seed),
  };
  await tx.table(advisoryKind).insert(row, events);
  return row;
}

/**
 * Replaces a stored advisory, apart from its id and creation time, and returns it.
 *
 * @param events its new events; absent: unchanged
 * @throws ApiError NOT_FOUND when there is no such advisory.
 */
export async function replaceAdvisory(
  tx: Tx,
  advisory: AdvisoryInput,
  events?: readonly AdvisoryEventRow[],
): Promise<AdvisoryRow> {
  const before = await tx.table(advisoryKind).find(advisory.uid);
  if (before === undefined) throw notFound(advisories, advisory.uid);
  const { advisoryId, createTimeMs } = before;
  const all = events ?? (await tx.table(advisoryKind).listEvents([advisory.uid]));
  const row: AdvisoryRow = { ...advisory, ...deriveColumns(advisory, all), advisoryId, createTimeMs };
  await tx.table(advisoryKind).replace(row, events);
  return row;
}

/**
 * Creates or updates an event, and returns its advisory, which changes with it.
 *
 * @throws ApiError NOT_FOUND when there is no such advisory.
 */
export async function putEvent(tx: Tx, event: AdvisoryEventRow): Promise<AdvisoryRow> {
  const before = await tx.table(advisoryKind).find(event.advisoryUid);
  if (before === undefined) throw notFound(advisories, event.advisoryUid);
  await tx.table(advisoryKind).putEvent(event);
  const updateTimeMs = Math.max(before.updateTimeMs, event.updateTimeMs);
  return replaceAdvisory(tx, { ...before, updateTimeMs });
}

function deriveColumns(advisory: AdvisoryInput, events: readonly AdvisoryEventRow[]) {
  const { artifactName, componentName, aliases } = advisory;
  return {
    searched: buildSearchText([artifactName, componentName, ...aliases]),
    latestEventType: findLatestType(events),
  };
}

// Events of the same time are ordered by uid, as responses show them.
function findLatestType(events: readonly AdvisoryEventRow[]): number {
  let latest: AdvisoryEventRow | undefined;
  for (const event of events) {
    if (event.reviewState === ReviewState.APPROVED && (latest === undefined || isAfter(event, latest))) latest = event;
  }
  return latest?.type ?? 0;
}

function isAfter(a: AdvisoryEventRow, b: AdvisoryEventRow): boolean {
  return a.createTimeMs === b.createTimeMs ? a.uid > b.uid : a.createTimeMs > b.createTimeMs;
}

async function findFreeId(tx: Tx, groupUid: string, seed: string): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    const advisoryId = deriveAdvisoryId(seed, attempt);
    if ((await tx.table(advisoryKind).findById(groupUid, advisoryId)) === undefined) return advisoryId;
  }
}

// A query has no line breaks, so none can match across two texts.
function buildSearchText(texts: readonly string[]): string {
  return texts.join("\n").toLowerCase();
}

// Digits and letters that are not confused with one another and spell no words.
const LETTERS = "23456789cfghjmpqrvwx";
const SIZE = 12;

/**
 * Derives an id such as `CGA-xvgw-cvr7-9g2q` from a seed.
 *
 * @param attempt counts up from 0 while the id is taken. There are 20^12 ids, so a collision happens once in a
 * million imports of 100,000
 */
function deriveAdvisoryId(seed: string, attempt = 0): string {
  const digest = sha256(JSON.stringify(["arbor advisory", seed, attempt])).toString("hex");
  let rest = BigInt(`0x${digest}`);
  let text = "";
  for (let i = 0; i < SIZE; i++) {
    text += LETTERS[Number(rest % 20n)];
    rest /= 20n;
  }
  return `CGA-${text.slice(0, 4)}-${text.slice(4, 8)}-${text.slice(8)}`;
}
