// Maps an OSV record to advisories, one for each affected package (docs/advisories.md).
import { create } from "@bufbuild/protobuf";
import {
  type AdvisoryEvent,
  AdvisoryEventSchema,
  ReviewState,
  Severity_Type,
  SeveritySchema,
} from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { sha256 } from "../../kernel/digest.js";
import { severitiesToJson } from "../advisories/advisory.js";
import type { AdvisoryInput } from "../advisories/advisory-operations.js";
import type { OsvPackage, OsvRecord, OsvSeverity } from "./record.js";

/** The author of imported advisories and events. */
const OSV_AUTHOR = "osv";

/** An event and its time, in epoch milliseconds. */
export interface TimedEvent {
  readonly event: AdvisoryEvent;
  readonly timeMs: number;
}

/** An advisory without uid and group. */
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

// Ecosystems whose packages are artifacts of their own. The packages of all others are libraries.
const systems: Readonly<Record<string, string>> = {
  Alpaquita: "apk",
  Alpine: "apk",
  BellSoft: "apk",
  Chainguard: "apk",
  MinimOS: "apk",
  Wolfi: "apk",
  Debian: "deb",
  Echo: "deb",
  Ubuntu: "deb",
  AlmaLinux: "rpm",
  "Azure Linux": "rpm",
  Mageia: "rpm",
  openEuler: "rpm",
  openSUSE: "rpm",
  "Photon OS": "rpm",
  "Red Hat": "rpm",
  "Rocky Linux": "rpm",
  SUSE: "rpm",
};

const libraries: Readonly<Record<string, string>> = {
  "crates.io": "rust-crate",
  "GitHub Actions": "github-action",
  Go: "go-module",
  Hackage: "haskell",
  Hex: "hex",
  Maven: "java-archive",
  npm: "npm",
  NuGet: "dotnet",
  Packagist: "php-composer",
  Pub: "dart-pub",
  PyPI: "python",
  RubyGems: "gem",
  SwiftURL: "swift",
};

/** Maps a record. The hash of an advisory changes with anything that is stored of it. */
export function mapRecord(record: OsvRecord): MappedAdvisory[] {
  const names = record.packages.map(({ ecosystem, name }) => [ecosystem, name]);
  return record.packages.map((affected) => {
    const events = mapEvents(record, affected);
    const advisory = mapContent(record, affected);
    const sourceHash = sha256(
      JSON.stringify([advisory, events.map(({ event, timeMs }) => [event.type, timeMs]), names]),
    ).toString("hex");
    return { advisory: { ...advisory, sourceHash }, events };
  });
}

/** Formats the prefix of the source keys of a record. */
export function formatSourcePrefix(recordId: string): string {
  return `${JSON.stringify(["osv", recordId]).slice(0, -1)},`;
}

function mapContent(record: OsvRecord, { ecosystem, name, severities }: OsvPackage) {
  const { id, modifiedMs, publishedMs = modifiedMs, withdrawnMs = null } = record;
  return {
    legacyAdvisoryId: id,
    author: OSV_AUTHOR,
    artifactName: name,
    artifactType: findArtifactType(ecosystem),
    artifactArchitecture: "",
    componentName: name,
    componentLocation: "",
    componentType: findComponentType(ecosystem),
    aliases: [...new Set([id, ...record.aliases])],
    severities: severitiesToJson(severities.flatMap(mapSeverity)),
    sourceKey: `${formatSourcePrefix(id)}${JSON.stringify([ecosystem, name]).slice(1)}`,
    deleteTimeMs: withdrawnMs,
    createTimeMs: publishedMs,
    updateTimeMs: modifiedMs,
  };
}

function mapSeverity({ type, score }: OsvSeverity) {
  const known = Object.hasOwn(severityTypes, type) ? severityTypes[type] : undefined;
  return known === undefined ? [] : [create(SeveritySchema, { type: known, score })];
}

// A record has the times of its publication and of its last change, and none for a fix.
function mapEvents(
  { modifiedMs, publishedMs = modifiedMs }: OsvRecord,
  { ecosystem, fixed }: OsvPackage,
): TimedEvent[] {
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

// The type of artifact: `apk`, `deb`, `rpm` or `library`.
function findArtifactType(ecosystem: string): string {
  return findType(systems, ecosystem) ?? "library";
}

// The type of component, such as `go-module`; the name of the ecosystem in lower case where there is no usual type.
function findComponentType(ecosystem: string): string {
  return findType(systems, ecosystem) ?? findType(libraries, ecosystem) ?? parseName(ecosystem).toLowerCase();
}

function findType(types: Readonly<Record<string, string>>, ecosystem: string): string | undefined {
  const name = parseName(ecosystem);
  return Object.hasOwn(types, name) ? types[name] : undefined;
}

// Without the release, as in `Debian:12`.
function parseName(ecosystem: string): string {
  return ecosystem.split(":", 1)[0] ?? ecosystem;
}
