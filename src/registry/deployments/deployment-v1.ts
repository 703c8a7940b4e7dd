// Deployments, version 1 alone: which Helm charts a repo is deployed by. There is
// at most one for a repo, and it goes by the id of that.
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import { alreadyExists, invalidArgument, notFound } from "../../kernel/errors.js";
import type { Handlers } from "../../pipeline/method-table.js";
import type { DeploymentRow, Tx } from "../../store/port.js";
import { foundRepo } from "../repos/repo-v2beta1.js";
import { chartsToJson, deploymentKind, deploymentView } from "./deployment.js";

/** The part of Registry that is about deployments. */
export const deploymentHandlersV1 = {
  async createDeployment({ parentId, charts }, { tx, startMs }) {
    await foundRepo(parentId, tx);
    if ((await tx.registry.deployment(parentId)) !== undefined) throw alreadyExists(deploymentKind, parentId);
    if (charts.length === 0) throw invalidArgument({ field: "charts", description: "charts is required" });
    const times = { createTimeMs: startMs, updateTimeMs: startMs };
    const row: DeploymentRow = { repoUid: parentId, charts: chartsToJson(charts), ...times };
    await tx.registry.putDeployment(row);
    return deploymentView(row);
  },

  async updateDeployment({ repoId, charts }, { tx, startMs }) {
    const before = await foundDeployment(repoId, tx);
    const row: DeploymentRow = { ...before, charts: chartsToJson(charts), updateTimeMs: startMs };
    if (charts.length === 0) await tx.registry.deleteDeployment(repoId);
    else await tx.registry.putDeployment(row);
    return deploymentView(row);
  },

  getDeployment: async ({ repoId }, { tx }) => deploymentView(await foundDeployment(repoId, tx)),
} satisfies Partial<Handlers<typeof Registry>>;

async function foundDeployment(repoUid: string, tx: Tx): Promise<DeploymentRow> {
  await foundRepo(repoUid, tx);
  const row = await tx.registry.deployment(repoUid);
  if (row === undefined) throw notFound(deploymentKind, repoUid, `there is no deployment of repo ${repoUid}`);
  return row;
}
