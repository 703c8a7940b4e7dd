// What a deployment of a repo is: the charts and their rules, and how it is
// stored and shown.
import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Deployment,
  DeploymentSchema,
  type HelmChart,
  HelmChartSchema,
} from "#gen/chainguard/platform/registry/chart_pb.js";
import { type FieldViolation, invalidArgument, type ResourceKind } from "../../kernel/errors.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import type { DeploymentRow } from "../../store/port.js";

/** What errors call deployments. */
export const deploymentKind: ResourceKind = { noun: "deployment", type: "registry.chainguard.dev/Deployment" };

/** How many charts a repo is deployed by at most. */
const MAX_CHARTS = 100;
/** How long an address or a name is at most, in characters. */
const MAX_TEXT = 512;

/**
 * The charts as they are stored, in the order given.
 *
 * @throws ApiError INVALID_ARGUMENT that names each field, as in `charts[2].repo`.
 */
export function chartsToJson(charts: readonly HelmChart[]): JsonValue[] {
  const violations: FieldViolation[] = [];
  const refuse = (field: string, rule: string) => violations.push({ field, description: `${field} ${rule}` });
  if (charts.length > MAX_CHARTS) refuse("charts", `must be at most ${MAX_CHARTS}`);
  else {
    charts.forEach(({ repo, source, chart }, i) => {
      if (!isChartRepo(repo))
        refuse(`charts[${i}].repo`, "must be an https or oci URL without a user name or password");
      if (source !== undefined && !isAddress(source)) refuse(`charts[${i}].source`, "must be a URL");
      if (chart !== undefined && !isLine(chart))
        refuse(`charts[${i}].chart`, `must be one line of at most ${MAX_TEXT} characters`);
    });
  }
  // One violation too many, and an error would not fit into a header.
  if (violations.length > 0) throw invalidArgument(...violations.slice(0, 10));
  return charts.map((chart) => toJson(HelmChartSchema, chart));
}

/** A stored deployment as callers see it: by the id of its repo. */
export function deploymentView({ repoUid, charts, createTimeMs, updateTimeMs }: DeploymentRow): Deployment {
  return create(DeploymentSchema, {
    id: repoUid,
    charts: (charts as JsonValue[]).map((chart) => fromJson(HelmChartSchema, chart, { ignoreUnknownFields: true })),
    createdAt: timestampFromMs(createTimeMs),
    updatedAt: timestampFromMs(updateTimeMs),
  });
}

const SAFE = new Set(["https:", "oci:"]);
const OWN_HOSTS = new Set(["localhost", "127.0.0.1", "[::1]"]);

function isChartRepo(text: string): boolean {
  if (!isAddress(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  const safe = SAFE.has(protocol) || (protocol === "http:" && OWN_HOSTS.has(hostname));
  return safe && hostname !== "" && username === "" && password === "";
}

function isAddress(text: string): boolean {
  return isLine(text) && URL.canParse(text);
}

function isLine(text: string): boolean {
  return text !== "" && text.length <= MAX_TEXT && isPrintable(text);
}
