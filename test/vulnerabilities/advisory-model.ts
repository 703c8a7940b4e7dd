// Random advisories, and what a list of them must hold, worked out from the
// contract and not with the code under test.
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
  EventTypeFilter,
  type ListAdvisoriesRequest,
  ReviewState,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import type { Tx } from "../../src/store/transaction.js";
import { buildEventRow } from "../../src/vulnerabilities/advisories/advisory.js";
import {
  type AdvisoryInput,
  insertAdvisory,
  putEvent,
  replaceAdvisory,
} from "../../src/vulnerabilities/advisories/advisory-operations.js";
import { childUid } from "../support/rows.js";
import { child, ours, sibling, theirs } from "./advisory-world.js";

// Names that a pattern, a folding or a comparison could take for one another.
export const names = ["curl", "Curl", "CURLY", "a%b", "a_b", "axb", "back\\slash", "Éclair", "éclair", "x"];
export const sorts = ["apk", "image", "library", "APK"];
export const aliases = ["CVE-2024-1", "CVE-2024-11", "GHSA-aaaa", "cve-2024-1", "100%"];
export const people = ["ann@example.org", "bob@example.org", "Ann@example.org", ""];

// In the order of the contract's numbers, from 1.
const types: readonly NonNullable<AdvisoryEvent["type"]["case"]>[] = [
  "detection",
  "truePositiveDetermination",
  "fixed",
  "falsePositiveDetermination",
  "analysisNotPlanned",
  "fixNotPlanned",
  "pendingUpstreamFix",
  "patched",
  "componentLocationChanged",
];

export interface ModelEvent {
  readonly uid: string;
  readonly type: (typeof types)[number];
  readonly author: string;
  readonly reviewer: string;
  readonly reviewState: ReviewState;
  readonly timeMs: number;
}

/** An advisory as the model knows it. */
export interface ModelAdvisory extends AdvisoryInput {
  advisoryId: string;
  readonly events: readonly ModelEvent[];
}

const pick = <T>(values: readonly T[]) => fc.constantFrom(...values);
const event = fc.record({
  type: pick(types),
  author: pick(people),
  reviewer: pick(people),
  reviewState: pick([1, 2, 2, 3, 4]) as fc.Arbitrary<ReviewState>,
  // Few moments, so that events share some.
  timeMs: fc.integer({ min: 1, max: 4 }),
});
const advisory = fc.record({
  groupUid: pick([ours, child, sibling, theirs]),
  artifactName: pick(names),
  artifactType: pick(sorts),
  artifactArchitecture: pick(["x86_64", "aarch64", ""]),
  componentName: pick(names),
  componentType: pick(sorts),
  componentLocation: pick(["/usr/lib", "/usr/lib/", ""]),
  aliases: fc.uniqueArray(pick(aliases), { maxLength: 3 }),
  legacyAdvisoryId: pick(["OLD-1", "OLD-2", ""]),
  deleteTimeMs: pick([null, 5_000]),
  createTimeMs: fc.integer({ min: 0, max: 20 }),
  updateTimeMs: fc.integer({ min: 20, max: 40 }),
  events: fc.array(event, { maxLength: 4 }),
});

/** `count` advisories, the same for the same seed. */
export function randomAdvisories(count: number, seed: number): ModelAdvisory[] {
  return fc.sample(advisory, { numRuns: count, seed }).map(({ events, ...rest }, n) => {
    const uid = childUid(rest.groupUid, 0x1000 + n);
    return {
      ...rest,
      uid,
      author: "somebody",
      severities: [],
      sourceKey: "",
      sourceHash: "",
      advisoryId: "",
      events: events.map((one, i) => ({ ...one, uid: childUid(uid, (i * 7 + n) % 13) })),
    };
  });
}

/** Stores an advisory; of three, one comes with its events, one gets them later, one was another before. */
export async function storeModel(tx: Tx, model: ModelAdvisory, way: number): Promise<void> {
  const { events, advisoryId: _, ...input } = model;
  const rows = events.map((one) => buildEventRow(model.uid, one.uid, messageOf(one), one.timeMs));
  if (way % 3 === 0) {
    model.advisoryId = (await insertAdvisory(tx, input, model.uid, rows)).advisoryId;
    return;
  }
  const before =
    way % 3 === 1 ? input : { ...input, artifactName: "before", componentName: "before", aliases: ["B-1"] };
  model.advisoryId = (await insertAdvisory(tx, before, model.uid)).advisoryId;
  for (const row of rows) await putEvent(tx, { ...row, reviewState: ReviewState.PENDING });
  for (const row of rows) await putEvent(tx, row);
  await replaceAdvisory(tx, input);
}

/** Makes a stored advisory another one, which has the same uid and creation time. */
export async function changeModel(tx: Tx, model: ModelAdvisory): Promise<void> {
  const { events, advisoryId: _, ...input } = model;
  const rows = events.map((one) => buildEventRow(model.uid, one.uid, messageOf(one), one.timeMs));
  await replaceAdvisory(tx, input, rows);
}

function messageOf({ type, author, reviewer, reviewState }: ModelEvent): AdvisoryEvent {
  const value = type === "detection" ? { type: { case: "manual", value: {} } } : {};
  return create(AdvisoryEventSchema, { author, reviewer, reviewState, type: { case: type, value } as never });
}

const numberOf = (type: ModelEvent["type"]): EventTypeFilter => types.indexOf(type) + 1;

/** Whether an advisory passes the filters of a request, those by uid aside. */
export function lets(request: ListAdvisoriesRequest, it: ModelAdvisory): boolean {
  const { origin, query, latestEventType } = request;
  const among = <T>(expected: readonly T[], ...values: readonly T[]) =>
    expected.length === 0 || values.some((value) => expected.includes(value));
  const approved = it.events.filter(({ reviewState }) => reviewState === ReviewState.APPROVED);
  approved.sort((a, b) => a.timeMs - b.timeMs || (a.uid < b.uid ? -1 : 1));
  const latest = approved.at(-1);
  const texts = [it.artifactName, it.componentName, ...it.aliases].map((text) => text.toLowerCase());
  return (
    among(request.advisoryIds, it.advisoryId) &&
    among(request.legacyAdvisoryIds, it.legacyAdvisoryId) &&
    among(origin ? [origin] : request.artifactNames, it.artifactName) &&
    among(request.artifactTypes, it.artifactType) &&
    among(request.artifactArchitectures, it.artifactArchitecture) &&
    among(request.componentNames, it.componentName) &&
    among(request.componentTypes, it.componentType) &&
    among(request.componentLocations, it.componentLocation) &&
    among(request.aliases, ...it.aliases) &&
    among(request.eventReviewStates, ...it.events.map((one) => one.reviewState)) &&
    among(request.eventAuthors, ...it.events.map((one) => one.author)) &&
    among(request.eventReviewers, ...it.events.map((one) => one.reviewer)) &&
    (request.eventTypes.includes(EventTypeFilter.UNSPECIFIED) ||
      among(request.eventTypes, ...it.events.map((one) => numberOf(one.type)))) &&
    !it.events.some((one) => request.excludeEventAuthors.includes(one.author)) &&
    (!latestEventType || (latest !== undefined && numberOf(latest.type) === latestEventType)) &&
    texts.some((text) => text.includes(query.toLowerCase()))
  );
}
