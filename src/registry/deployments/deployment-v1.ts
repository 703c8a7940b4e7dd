// Deployments, which only version 1 has: the Helm charts that deploy a repo. A repo has at most one deployment, with
// the id of the repo.
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { alreadyExists, invalidArgument, notFound } from "../../kernel/errors.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { getRow } from "../../pipeline/resource/read.js";
import type { DeploymentRow, Tx } from "../../store/port.js";
import { repos } from "../repos/repo.js";
import { chartsToJson, deployments, deploymentToProto } from "./deployment.js";

/** The handlers of Registry for deployments. */
export const deploymentHandlersV1 = {
  async createDeployment({ parentId, charts }, { tx, startMs }) {
    await getRow(tx, repos, parentId);
    if ((await tx.registry.findDeployment(parentId)) !== undefined) throw alreadyExists(deployments, parentId);
    if (charts.length === 0) throw invalidArgument({ field: "charts", description: "charts is required" });
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
