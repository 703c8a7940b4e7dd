// The handlers of ReposService in version 2beta1.
import { create } from "@bufbuild/protobuf";
import { UIDPFilterSchema } from "#gen/chainguard/platform/common/uidp_pb.js";
import {
  type DeleteRepoRequest,
  RepoReadmeSchema,
  RepoSchema,
  ReposService,
} from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { groups } from "../../iam/groups/group.js";
import { alreadyExists, failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { type BodyView, defineBodies } from "../../pipeline/body.js";
import { type Handlers, withPreparation } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { cascadeDelete, countRows, deleteInParts, guardDelete } from "../../pipeline/resource/delete.js";
import { splitOrder } from "../../pipeline/resource/list-query.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { overlayBindingKind } from "../../store/registry/overlay-bindings.js";
import { type RepoRow, repoKind } from "../../store/registry/repos.js";
import { tagKind } from "../../store/registry/tags.js";
import type { Tx } from "../../store/transaction.js";
import type { ImageDeps } from "../images/image.js";
import { parseRepoPath } from "../oci/repo-path.js";
import { MAX_README_REQUEST } from "./readme-rule.js";
import {
  buildRepo,
  configToJson,
  deleteContents,
  hasOverlay,
  readInheritedFields,
  readmes,
  readmeToProto,
  repos,
  repoToCatalogEntry,
  repoToProto,
} from "./repo.js";
import { MAX_REPO_REQUEST } from "./repo-rules.js";
import { resolveSource } from "./repo-source.js";

/** How bodies of the audit log show repos. */
export const repoView = { message: RepoSchema, readers: [ReposService.method.listRepos] } as const satisfies BodyView;

const bodies = defineBodies(repoView, findsResource(repos, repoToProto));
const readmeBodies = defineBodies(
  { message: RepoReadmeSchema, readers: [ReposService.method.getRepoReadme] },
  findsResource(repos, readmeToProto),
);

export interface RepoDeps extends ResourceDeps, Pick<ImageDeps, "store"> {
  /** The uid of the group whose repos are the catalogue; absent where the operator has chosen none. */
  readonly catalogGroup?: string | undefined;
}

/** Creates ReposService. */
export function reposV2beta1({ listResources, definitions, ids, store, catalogGroup }: RepoDeps) {
  const handlers: Handlers<typeof ReposService> = {
    getRepo: ({ uid }, { tx }) => getResource(tx, repos, uid, repoToProto),

    async listRepos(request, call) {
      const filtered = { ...request, name: request.name ?? "" };
      const { resources, ...page } = await listResources(call, repos, filtered, repoToProto);
      return { repos: resources, ...page };
    },

    async createRepo({ parent, repo }, call) {
      const { tx, startMs } = call;
      await getRow(tx, groups, parent);
      const { name, ...named } = buildValues(repos, repo);
      await requireFreeName(parent, name, tx);
      const unset = buildRepo(parent, name, { ids, nowMs: startMs });
      const change = { groupUid: parent, before: repoToProto(unset), named };
      const { config, startedFrom, inherited = [] } = await resolveSource(change, call);
      const takesDescription = named.description === "" && startedFrom !== undefined;
      const row: RepoRow = {
        ...unset,
        description: takesDescription ? startedFrom.description : named.description,
        config: configToJson(config, takesDescription ? [...inherited, "description"] : inherited),
        readme: startedFrom?.readme ?? "",
      };
      await tx.table(repoKind).insert(row);
      return repoToProto(row);
    },

    async updateRepo({ repo, updateMask }, call) {
      const { tx, startMs } = call;
      const before = await getRow(tx, repos, repo?.uid ?? "");
      const view = repoToProto(before);
      const patch = buildPatch(repos, repo, updateMask, view);
      if (Object.keys(patch).length === 0) return view;
      const { name = before.name, ...named } = patch;
      if (name !== before.name) {
        await requireFreeName(before.groupUid, name, tx);
        await requireNoTags(before.uid, tx);
      }
      const { uid, groupUid } = before;
      const change = { groupUid, uid, before: view, named, inherited: readInheritedFields(before) };
      const { config, startedFrom, inherited } = await resolveSource(change, call);
      if (hasOverlay(config) && !hasOverlay(view)) await requireNoBindings(uid, tx);
      const row: RepoRow = {
        ...before,
        name,
        description: named.description ?? before.description,
        config: configToJson(config, inherited),
        readme: startedFrom?.readme ?? before.readme,
        updateTimeMs: startMs,
      };
      await tx.table(repoKind).replace(row);
      return repoToProto(row);
    },

    deleteRepo: withPreparation({
      prepare: ({ uid }: DeleteRepoRequest, call) => deleteInParts(store, call, (tx) => deleteContents(tx, uid)),
      async handle({ uid }: DeleteRepoRequest, { tx, startMs }) {
        await getRow(tx, repos, uid);
        await guardDelete(definitions, repos, uid, tx, startMs);
        await cascadeDelete(definitions, repos, uid, tx);
        while ((await deleteContents(tx, uid)) > 0);
        await tx.table(repoKind).delete(uid);
        return {};
      },
    }),

    async listCatalogImages(request, call) {
      // Who has the capability anywhere sees all of the group, whoever owns it.
      const mayList = catalogGroup !== undefined && (await call.visibleGroups()).length > 0;
      const filtered = {
        ...request,
        name: request.name ?? "",
        orderBy: splitOrder(request.orderBy) === undefined ? "name" : request.orderBy,
        ...(catalogGroup !== undefined && { uidp: create(UIDPFilterSchema, { childrenOf: catalogGroup }) }),
      };
      const visible = mayList ? [catalogGroup] : [];
      const { resources, ...page } = await listResources(call, repos, filtered, repoToCatalogEntry, { visible });
      return { repos: resources, ...page };
    },

    getRepoReadme: ({ uid }, { tx }) => getResource(tx, repos, uid, readmeToProto),

    async updateRepoReadme({ repoReadme, updateMask }, { tx, startMs }) {
      const before = await getRow(tx, repos, repoReadme?.uid ?? "");
      const { content = before.readme } = buildPatch(readmes, repoReadme, updateMask, readmeToProto(before));
      if (content === before.readme) return readmeToProto(before);
      if (repoToProto(before).syncConfig) throw readmeIsCopied();
      const row: RepoRow = { ...before, readme: content, updateTimeMs: startMs };
      await tx.table(repoKind).replace(row);
      return readmeToProto(row);
    },
  };
  return serve(ReposService, handlers, {
    createRepo: { maxRequestBytes: MAX_REPO_REQUEST, body: bodies.created },
    updateRepo: { maxRequestBytes: MAX_REPO_REQUEST, body: bodies.updated },
    deleteRepo: { body: bodies.deleted },
    updateRepoReadme: { maxRequestBytes: MAX_README_REQUEST, body: readmeBodies.updated },
  });
}

async function requireFreeName(groupUid: string, name: string, tx: Tx): Promise<void> {
  if (parseRepoPath(`${groupUid}/${name}`) === undefined) {
    const rule = "must be shorter in a group this deep: paths in a registry have at most 255 characters";
    throw invalidArgument({ field: "name", rule: `${rule}` });
  }
  const existing = await tx.table(repoKind).findByName(groupUid, name);
  if (existing !== undefined) throw alreadyExists(repos, existing.uid);
}

// A registry stores images by path and cannot move them, so a repo with tags keeps its name.
async function requireNoTags(uid: string, tx: Tx): Promise<void> {
  const tags = await tx.table(tagKind).findUidsWhere("repoUid", uid, 1);
  if (tags.length > 0) throw failedPrecondition("RESOURCE_NOT_EMPTY", "cannot rename repo with child tags");
}

// What is added to an image is said in one place: in its repo, or in the overlays that are bound to it.
async function requireNoBindings(uid: string, tx: Tx): Promise<void> {
  if (await countRows(tx.table(overlayBindingKind), "repoUid", uid))
    throw failedPrecondition("RESOURCE_IN_USE", "cannot set the custom overlay of repo with child overlay bindings");
}

function readmeIsCopied() {
  return invalidArgument({
    field: "content",
    rule: "of a repo that is copied must be that of its source",
  });
}
