// The deployment of a repo, which only version 1 has: the Helm charts and their rules, how it is stored, and its handlers.
// A repo has at most one deployment, with the id of the repo.
import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type Deployment,
  DeploymentSchema,
  type HelmChart,
  HelmChartSchema,
} from "#gen/chainguard/platform/registry/chart_pb.js";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { alreadyExists, type FieldViolation, invalidArgument, notFound } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { Handlers } from "../../pipeline/handlers.js";
import type { ResourceDefinition } from "../../pipeline/resource/define.js";
import { getRow } from "../../pipeline/resource/read.js";
import { isPrintable } from "../../pipeline/resource/rules.js";
import type { DeploymentRow } from "../../store/tables/registry.js";
import type { Tx } from "../../store/transaction.js";
import { repos } from "../repos/repo.js";

/** The deployment resource; a repo has at most one. */
export const deployments: ResourceDefinition = {
  displayName: "deployment",
  plural: "deployments",
  type: "registry.chainguard.dev/Deployment",
  message: DeploymentSchema,
  parent: {
    type: "registry.chainguard.dev/Repo",
    onDelete: { cascade: (tx, repoUid) => tx.registry.deleteDeployment(repoUid) },
  },
};

/** The largest number of charts of a deployment. */
const MAX_CHARTS = 100;
/** The longest address or name, in characters. */
const MAX_TEXT = 512;

/**
 * Converts charts to what is stored, in the same order.
 *
 * @throws ApiError INVALID_ARGUMENT that names each field, as in `charts[2].repo`.
 */
function chartsToJson(charts: readonly HelmChart[]): JsonValue[] {
  const violations: FieldViolation[] = [];
  const addViolation = (field: string, rule: string) => violations.push({ field, rule });
  if (charts.length > MAX_CHARTS) addViolation("charts", `must be at most ${MAX_CHARTS}`);
  else {
    charts.forEach(({ repo, source, chart }, i) => {
      if (!isChartRepo(repo))
        addViolation(`charts[${i}].repo`, "must be an https or oci URL without a user name or password");
      if (source !== undefined && !isAddress(source)) addViolation(`charts[${i}].source`, "must be a URL");
      if (chart !== undefined && !isLine(chart))
        addViolation(`charts[${i}].chart`, `must be one line of at most ${MAX_TEXT} characters`);
    });
  }
  // The number of violations is limited, because errors must fit into a header.
  if (violations.length > 0) throw invalidArgument(...violations.slice(0, 10));
  return charts.map((chart) => toJson(HelmChartSchema, chart));
}

/** Converts a stored deployment to version 1. Its id is that of its repo. */
function deploymentToProto({ repoUid, charts, createTimeMs, updateTimeMs }: DeploymentRow): Deployment {
  return create(DeploymentSchema, {
    id: repoUid,
    charts: (charts as JsonValue[]).map((chart) => fromJson(HelmChartSchema, chart, { ignoreUnknownFields: true })),
    createdAt: timestampOf(createTimeMs),
    updatedAt: timestampOf(updateTimeMs),
  });
}

const SAFE = new Set(["https:", "oci:"]);
const OWN_HOSTS = new Set(["localhost", "127.0.0.1", "[::1]"]);

function isChartRepo(text: string): boolean {
  if (!isAddress(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  const isSafe = SAFE.has(protocol) || (protocol === "http:" && OWN_HOSTS.has(hostname));
  return isSafe && hostname !== "" && username === "" && password === "";
}

function isAddress(text: string): boolean {
  return isLine(text) && URL.canParse(text);
}

function isLine(text: string): boolean {
  return text !== "" && text.length <= MAX_TEXT && isPrintable(text);
}

async function findDeployment(repoUid: string, { tx }: UnaryCall): Promise<Deployment | undefined> {
  const row = await tx.registry.findDeployment(repoUid);
  return row && deploymentToProto(row);
}

/** The bodies of its methods in the audit log. */
export const deploymentBodiesV1 = defineBodies(
  { message: DeploymentSchema, readers: [Registry.method.getDeployment] },
  findDeployment,
);

/** The handlers of Registry for deployments. */
export const deploymentHandlersV1 = {
  async createDeployment({ parentId, charts }, { tx, startMs }) {
    await getRow(tx, repos, parentId);
    if ((await tx.registry.findDeployment(parentId)) !== undefined) throw alreadyExists(deployments, parentId);
    if (charts.length === 0) throw invalidArgument({ field: "charts", rule: "is required" });
    const times = { createTimeMs: startMs, updateTimeMs: startMs };
    const row: DeploymentRow = { repoUid: parentId, charts: chartsToJson(charts), ...times };
    await tx.registry.putDeployment(row);
    return deploymentToProto(row);
  },

  async updateDeployment({ repoId, charts }, { tx, startMs }) {
    const before = await getDeploymentRow(repoId, tx);
    const row: DeploymentRow = { ...before, charts: chartsToJson(charts), updateTimeMs: startMs };
    if (charts.length === 0) await tx.registry.deleteDeployment(repoId);
    else await tx.registry.putDeployment(row);
    return deploymentToProto(row);
  },

  getDeployment: async ({ repoId }, { tx }) => deploymentToProto(await getDeploymentRow(repoId, tx)),
} satisfies Partial<Handlers<typeof Registry>>;

async function getDeploymentRow(repoUid: string, tx: Tx): Promise<DeploymentRow> {
  await getRow(tx, repos, repoUid);
  const row = await tx.registry.findDeployment(repoUid);
  if (row === undefined) throw notFound(deployments, repoUid, `there is no deployment of repo ${repoUid}`);
  return row;
}
