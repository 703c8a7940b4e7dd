// The values under which the index of filters finds an advisory.
import { parentOf } from "../kernel/uidp.js";
import type { AdvisoryEventRow, AdvisoryRow, Facets } from "./tables/advisories.js";

/** The number of the filter that all advisories pass, with an empty value. */
export const EVERY = 0;
/** The number of the filter by group. */
export const GROUP = 1;

// The numbers are stored, so they never change.
const readers: readonly [name: string, read: (row: AdvisoryRow, events: readonly AdvisoryEventRow[]) => string[]][] = [
  ["every", () => [""]],
  ["group", ({ uid }) => [parentOf(uid) ?? ""]],
  ["advisoryIds", (row) => [row.advisoryId]],
  ["legacyAdvisoryIds", (row) => [row.legacyAdvisoryId]],
  ["artifactNames", (row) => [row.artifactName]],
  ["artifactTypes", (row) => [row.artifactType]],
  ["artifactArchitectures", (row) => [row.artifactArchitecture]],
  ["componentNames", (row) => [row.componentName]],
  ["componentTypes", (row) => [row.componentType]],
  ["componentLocations", (row) => [row.componentLocation]],
  ["latestEventType", (row) => [String(row.latestEventType)]],
  ["aliases", (row) => unique(row.aliases)],
  ["eventReviewStates", (_, events) => unique(events.map(({ reviewState }) => String(reviewState)))],
  ["eventAuthors", (_, events) => unique(events.map(({ author }) => author))],
  ["eventReviewers", (_, events) => unique(events.map(({ reviewer }) => reviewer))],
  ["eventTypes", (_, events) => unique(events.map(({ type }) => String(type)))],
];

/** The numbers of the filters by their names in a list query. */
export const filterNumbers: ReadonlyMap<string, number> = new Map(readers.map(([name], number) => [name, number]));

/** Builds the values of an advisory with these events for each filter. */
export function buildFacets(row: AdvisoryRow, events: readonly AdvisoryEventRow[]): Facets {
  return readers.map(([, read]) => read(row, events));
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
