// What advisories an OSV record becomes: one for each package that it affects
// (docs/advisories.md).
import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
  ReviewState,
  Severity_Type,
  SeveritySchema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { severitiesToJson } from "../advisories/advisory.js";
import type { AdvisoryInput } from "../advisories/advisory-operations.js";
import { artifactTypeOf, componentTypeOf } from "./ecosystem.js";
import type { OsvPackage, OsvRecord, OsvSeverity } from "./record.js";

/** The author of advisories and events that were imported. */
export const OSV_AUTHOR = "osv";

/** An event and when it happened, in epoch milliseconds. */
export interface TimedEvent {
  readonly event: AdvisoryEvent;
  readonly timeMs: number;
}

/** An advisory as a record has it, before it has a place. */
export interface MappedAdvisory {
  readonly advisory: Omit<AdvisoryInput, "uid" | "groupUid">;
  /** Oldest first. */
  readonly events: readonly TimedEvent[];
}

const severityTypes: Readonly<Record<string, Severity_Type>> = {
  CVSS_V2: Severity_Type.CVSS_V2,
  CVSS_V3: Severity_Type.CVSS_V3,
  CVSS_V4: Severity_Type.CVSS_V4,
};

/** The advisories of a record. Their hashes change with anything that would be stored. */
export function advisoriesOf(record: OsvRecord): MappedAdvisory[] {
  const names = record.packages.map(({ ecosystem, name }) => [ecosystem, name]);
  return record.packages.map((affected) => {
    const events = eventsOf(record, affected);
    const advisory = contentOf(record, affected);
    const sourceHash = hashOf([advisory, events.map(({ event, timeMs }) => [event.type, timeMs]), names]);
    return { advisory: { ...advisory, sourceHash }, events };
  });
}

/** How the source of all advisories of a record begins. */
export function sourcePrefix(recordId: string): string {
  return `${JSON.stringify(["osv", recordId]).slice(0, -1)},`;
}

function contentOf(record: OsvRecord, { ecosystem, name, severities }: OsvPackage) {
  const { id, modifiedMs, publishedMs = modifiedMs, withdrawnMs = null } = record;
  return {
    legacyAdvisoryId: id,
    author: OSV_AUTHOR,
    artifactName: name,
    artifactType: artifactTypeOf(ecosystem),
    artifactArchitecture: "",
    componentName: name,
    componentLocation: "",
    componentType: componentTypeOf(ecosystem),
    aliases: [...new Set([id, ...record.aliases])],
    severities: severitiesToJson(severities.flatMap(severityOf)),
    sourceKey: `${sourcePrefix(id)}${JSON.stringify([ecosystem, name]).slice(1)}`,
    deleteTimeMs: withdrawnMs,
    createTimeMs: publishedMs,
    updateTimeMs: modifiedMs,
  };
}

function severityOf({ type, score }: OsvSeverity) {
  const known = Object.hasOwn(severityTypes, type) ? severityTypes[type] : undefined;
  return known === undefined ? [] : [create(SeveritySchema, { type: known, score })];
}

// A record says when it was published and last changed, not when each fix came out.
function eventsOf({ modifiedMs, publishedMs = modifiedMs }: OsvRecord, { ecosystem, fixed }: OsvPackage): TimedEvent[] {
  const approved = { author: OSV_AUTHOR, reviewer: OSV_AUTHOR, reviewState: ReviewState.APPROVED };
  const detected = create(AdvisoryEventSchema, {
    ...approved,
    type: { case: "detection", value: { type: { case: "manual", value: {} } } },
  });
  const fixes = fixed.map((fixedVersion) => ({
    event: create(AdvisoryEventSchema, {
      ...approved,
      type: { case: "fixed", value: { fixedVersion, note: ecosystem } },
    }),
    timeMs: Math.max(publishedMs, modifiedMs),
  }));
  return [{ event: detected, timeMs: publishedMs }, ...fixes];
}

function hashOf(content: unknown): string {
  return createHash("sha256").update(JSON.stringify(content)).digest("hex");
}
