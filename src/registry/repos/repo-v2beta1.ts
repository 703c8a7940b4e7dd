// The handlers of ReposService in version 2beta1.
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { alreadyExists, failedPrecondition, invalidArgument, notFound } from "../../kernel/errors.js";
import { type Handlers, serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { RepoRow, Tx } from "../../store/port.js";
import { parseRepoPath } from "../oci/repo-path.js";
import type { RegistryDeps } from "../registry-deps.js";
import { MAX_README_REQUEST } from "./readme-rule.js";
import { configToJson, groupKind, readmes, readmeView, repos, repoView } from "./repo.js";
import { bareRepo, removeRepo } from "./repo-operations.js";
import { MAX_REPO_REQUEST } from "./repo-rules.js";
import { resolveSource } from "./repo-source.js";

/** ReposService, ready to be served. */
export function reposV2beta1({ tokens, ids }: RegistryDeps) {
  const handlers: Handlers<typeof ReposService> = {
    async getRepo({ uid }, { tx }) {
      return repoView(await foundRepo(uid, tx));
    },

    async listRepos(request, call) {
      const { tx, startMs } = call;
      const context = { method: "ListRepos", tokens, nowMs: startMs, visible: await call.visibleGroups(request.uidp) };
      const list = listQueryOf(repos, { ...request, name: request.name ?? "" }, context);
      const page = await tx.repos.list(list.query);
      return { repos: page.rows.map(repoView), ...list.envelope(page) };
    },

    async createRepo({ parent, repo }, call) {
      const { tx, startMs } = call;
      if ((await tx.groups.get(parent)) === undefined) throw notFound(groupKind, parent);
      const { name, description, ...after } = valuesOf(repos, repo);
      await requireFreeName(parent, name, tx);
      const bare = bareRepo(parent, name, { ids, nowMs: startMs });
      const { config, begun } = await resolveSource({ groupUid: parent, before: repoView(bare), after }, call);
      const row: RepoRow = {
        ...bare,
        description: description || (begun?.description ?? ""),
        config: configToJson(config),
        readme: begun?.readme ?? "",
      };
      await tx.repos.insert(row);
      return repoView(row);
    },

    async updateRepo({ repo, updateMask }, call) {
      const { tx, startMs } = call;
      const before = await foundRepo(repo?.uid ?? "", tx);
      const view = repoView(before);
      const patch = patchOf(repos, repo, updateMask, view);
      if (Object.keys(patch).length === 0) return view;
      const { name = before.name, description = before.description, ...own } = patch;
      if (name !== before.name) {
        await requireFreeName(before.groupUid, name, tx);
        await requireNoTags(before.uid, tx);
      }
      const { uid, groupUid } = before;
      const { config, begun } = await resolveSource({ groupUid, uid, before: view, after: { ...view, ...own } }, call);
      const row: RepoRow = {
        ...before,
        name,
        description,
        config: configToJson(config),
        readme: begun?.readme ?? before.readme,
        updateTimeMs: startMs,
      };
      await tx.repos.replace(row);
      return repoView(row);
    },

    async deleteRepo({ uid }, { tx }) {
      await foundRepo(uid, tx);
      await removeRepo(tx, uid);
      return {};
    },

    async getRepoReadme({ uid }, { tx }) {
      return readmeView(await foundRepo(uid, tx));
    },

    async updateRepoReadme({ repoReadme, updateMask }, { tx, startMs }) {
      const before = await foundRepo(repoReadme?.uid ?? "", tx);
      const { content = before.readme } = patchOf(readmes, repoReadme, updateMask, readmeView(before));
      if (content === before.readme) return readmeView(before);
      if (repoView(before).syncConfig) throw copiedReadme();
      const row: RepoRow = { ...before, readme: content, updateTimeMs: startMs };
      await tx.repos.replace(row);
      return readmeView(row);
    },
  };
  return serve(ReposService, handlers, {
    createRepo: { maxRequestBytes: MAX_REPO_REQUEST },
    updateRepo: { maxRequestBytes: MAX_REPO_REQUEST },
    updateRepoReadme: { maxRequestBytes: MAX_README_REQUEST },
  });
}

/**
 * The repo of this uid.
 *
 * @throws ApiError NOT_FOUND; the pipeline words that for who may not know.
 */
export async function foundRepo(uid: string, tx: Tx): Promise<RepoRow> {
  const row = await tx.repos.get(uid);
  if (row === undefined) throw notFound(repos, uid);
  return row;
}

async function requireFreeName(groupUid: string, name: string, tx: Tx): Promise<void> {
  if (parseRepoPath(`${groupUid}/${name}`) === undefined) {
    const rule = "must be shorter in a group this deep: paths in a registry have at most 255 characters";
    throw invalidArgument({ field: "name", description: `name ${rule}` });
  }
  const holder = await tx.repos.named(groupUid, name);
  if (holder !== undefined) throw alreadyExists(repos, holder.uid);
}

// A registry keeps images by path and moves none: they would be left behind.
async function requireNoTags(uid: string, tx: Tx): Promise<void> {
  const tags = await tx.tags.uidsWhere("repoUid", uid, 1);
  if (tags.length > 0) throw failedPrecondition("RESOURCE_NOT_EMPTY", "cannot rename repo with child tags");
}

function copiedReadme() {
  return invalidArgument({
    field: "content",
    description: "content of a repo that is copied must be that of its source",
  });
}
