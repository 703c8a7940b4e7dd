// Repos, version 1: a view of ReposService. Version 1 has a repo and its readme in one resource. The numbers of
// tiers and the names of accounts in overlays differ between the versions.
import { setImmediate as yieldToEventLoop } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import {
  type CreateRepoRequest,
  type CustomOverlay,
  type CustomOverlaySchema,
  type DeleteRepoRequest,
  type GetRepoCountBySourceRequest,
  type Repo,
  type RepoFilter,
  RepoSchema,
} from "#gen/chainguard/platform/registry/repo_pb.js";
import {
  type CustomOverlaySchema as CustomOverlaySchemaV2,
  type CustomOverlay as CustomOverlayV2,
  type RepoSchema as RepoSchemaV2,
  ReposService,
  type Repo as RepoV2,
} from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { deadlineExceeded, resourceExhausted } from "../../kernel/errors.js";
import { defineBodies } from "../../pipeline/body.js";
import type { CallContext, UnaryCall } from "../../pipeline/call.js";
import { type Handlers, listInChunks, withPreparation } from "../../pipeline/handlers.js";
import { readCapabilities, type ServedService } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { deleteInParts } from "../../pipeline/resource/delete.js";
import {
  defineFixedFields,
  requireCreated,
  requireUpdated,
  setByService,
} from "../../pipeline/resource/fixed-fields.js";
import { findsResource, getRow } from "../../pipeline/resource/read.js";
import { buildChunkQuery, createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import type { ListPosition } from "../../store/lists/query.js";
import { type RepoRow, repoKind } from "../../store/registry/repos.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import type { ImageDeps } from "../images/image.js";
import { isRepoName } from "../oci/repo-path.js";
import { deleteContents, findSource, markInherited, readInheritedFields, repos, repoToProto } from "./repo.js";

/** The difference between the numbers of tiers; 0 is 0 in both versions. */
const TIER_OFFSET = 3;
/** How many repos a chunk has: one with its overlay and its readme may take half a megabyte. */
const CHUNK_SIZE = 100;
/** The largest number of repos that a count reads. */
const MAX_COUNTED = 50_000;

const paths = ["name", "description", "catalog_tier", "bundles", "aliases", "active_tags", "sync_config"];
const fullMask = [...paths, "custom_overlay"];
const fixed = defineFixedFields(RepoSchema, {
  "syncConfig.uniqueTags": setByService(),
  "syncConfig.expiration": setByService("14 days from the start of the copy"),
  "syncConfig.syncApks": { rule: "is no longer used" },
  "syncConfig.apkoOverlay": setByService(),
  "syncConfig.gracePeriod": setByService(),
});
const update = readCapabilities(ReposService.method.updateRepo);
const readReadme = readCapabilities(ReposService.method.getRepoReadme);

// A repo of version 1 has its readme, which needs a right of its own.
const bodies = defineBodies(
  { message: RepoSchema, readers: [Registry.method.listRepos, ReposService.method.getRepoReadme] },
  findsResource(repos, maskReadme),
);

/** The bodies of its methods in the audit log. */
export const repoBodiesV1 = {
  ...bodies,
  created: {
    ...bodies.created,
    // A repo that exists is updated.
    async findBefore(parentId: string, call: UnaryCall, { repo }: CreateRepoRequest) {
      const row = await call.tx.table(repoKind).findByName(parentId, repo?.name ?? "");
      return row && maskReadme(row, call);
    },
  },
} as const;

/** Creates the handlers of Registry for repos. */
export function repoHandlersV1(served: ServedService<typeof ReposService>, { store }: Pick<ImageDeps, "store">) {
  const v2 = createOperations(served, { uid: "id", parent: "parentId" });
  const readmes = createOperations(served, { uid: "id", content: "readme" });

  // In version 1 the readme is a field of the repo and needs no right of its own. A copy keeps the readme of its
  // source when a request leaves it out. The readme also stays for a caller who may not read it: that caller reads an
  // empty one and sends it back.
  async function updateReadme(uid: string, readme: string, call: UnaryCall): Promise<RepoRow> {
    const row = await getRow(call.tx, repos, uid);
    const isLeftOut = readme === "" && (findSource(row) !== undefined || !call.caller.holds(readReadme, uid));
    if (readme === row.readme || isLeftOut) return row;
    await readmes.updateRepoReadme({ repoReadme: { uid, content: readme }, updateMask: { paths: ["content"] } }, call);
    return getRow(call.tx, repos, uid);
  }

  // An empty description leaves an inherited one as it is, as it does in the other fields of a copy.
  async function updateFields(fields: ReturnType<typeof repoFromV1>, before: RepoRow | undefined, call: UnaryCall) {
    const keeps =
      fields.description === "" && before !== undefined && readInheritedFields(before).includes("description");
    const mask = { paths: keeps ? fullMask.filter((path) => path !== "description") : fullMask };
    return v2.updateRepo({ repo: fields, updateMask: mask }, call);
  }

  return {
    async createRepo({ parentId, repo, preventExisting }, call) {
      const fields = repoFromV1(repo);
      const name = repo?.name ?? "";
      const existing =
        preventExisting || !isRepoName(name) ? undefined : await call.tx.table(repoKind).findByName(parentId, name);
      // A caller who may only create gets ALREADY_EXISTS of version 2.
      const { uid } =
        existing && call.caller.holds(update, existing.uid)
          ? await updateFields({ ...fields, uid: existing.uid }, existing, call)
          : await v2.createRepo({ parent: parentId, repo: fields }, call);
      const readme = repo?.readme ?? "";
      const row = await rememberReadme(await updateReadme(uid, readme, call), readme, call.tx);
      return requireCreated(fixed, repo, maskReadme(row, call));
    },

    async updateRepo(repo, call) {
      const { uid } = await updateFields(repoFromV1(repo), await call.tx.table(repoKind).find(repo.id), call);
      const row = await rememberReadme(await updateReadme(uid, repo.readme, call), repo.readme, call.tx);
      return requireUpdated(fixed, repo, maskReadme(row, call));
    },

    listRepos: listInChunks(
      createChunkReader(repos, toProtoV1, (filter: RepoFilter) => ({ request: filter }), CHUNK_SIZE),
    ),

    deleteRepo: withPreparation({
      prepare: ({ id }: DeleteRepoRequest, call) => deleteInParts(store, call, (tx) => deleteContents(tx, id)),
      handle: ({ id }: DeleteRepoRequest, call) => v2.deleteRepo({ uid: id }, call),
    }),

    // The count reads in units of work of its own, so that a long one does not block other calls.
    getRepoCountBySource: withPreparation({
      prepare: ({ id }: GetRepoCountBySourceRequest, call) => countCopies(id, store, call),
      async handle({ id }, { tx }, count) {
        await getRow(tx, repos, id);
        return { count: BigInt(count) };
      },
    }),
  } satisfies Partial<Handlers<typeof Registry>>;
}

// A copy shows the fields that its caller has left out as they were sent: clients compare both.
function toProtoV1(row: RepoRow): Repo {
  const repo = fromV2(repoToProto(row), row.readme);
  for (const field of readInheritedFields(row)) reflect(RepoSchema, repo).clear(RepoSchema.field[field]);
  return repo;
}

// The readme of a copy is that of its source. It shows in version 1 once the caller has sent it.
async function rememberReadme(row: RepoRow, sent: string, tx: Tx): Promise<RepoRow> {
  const isInherited = findSource(row) !== undefined && sent === "";
  if (readInheritedFields(row).includes("readme") === isInherited) return row;
  const marked = markInherited(row, "readme", isInherited);
  await tx.table(repoKind).replace(marked);
  return marked;
}

// As in version 2, a caller sees a readme only with the right to read it.
function maskReadme(row: RepoRow, { caller }: UnaryCall) {
  return caller.holds(readReadme, row.uid) ? toProtoV1(row) : toProtoV1({ ...row, readme: "" });
}

// Only copies that the caller may see are counted.
async function countCopies(source: string, store: Store, call: CallContext): Promise<number> {
  const { deadlineMs } = call;
  let [count, read] = [0, 0];
  let after: ListPosition | undefined;
  do {
    const chunk = async (tx: Tx) => {
      const visible = (await call.callerEverywhere(tx)).visibleGroups();
      return tx.table(repoKind).list({ ...buildChunkQuery({}, { visible }, after), limit: CHUNK_SIZE });
    };
    const { rows, next } = await store.read(chunk, { deadlineMs });
    count += rows.filter((row) => findSource(row) === source).length;
    read += rows.length;
    if (read > MAX_COUNTED) throw resourceExhausted(`count: more than ${MAX_COUNTED} repos to look through`);
    if (call.signal.aborted) throw deadlineExceeded();
    after = next;
    await yieldToEventLoop();
  } while (after !== undefined);
  return count;
}

function fromV2(repo: RepoV2, readme: string): Repo {
  const { uid, name, description, catalogTier, bundles, aliases, activeTags } = repo;
  const { createTime, updateTime, syncConfig: sync, customOverlay } = repo;
  return create(RepoSchema, {
    ...{ id: uid, name, description, bundles, aliases, activeTags, readme },
    catalogTier: catalogTier === 0 ? 0 : catalogTier + TIER_OFFSET,
    ...(sync && {
      syncConfig: {
        ...{ source: sync.source, google: sync.google, amazon: sync.amazon, azure: sync.azure },
        ...{ uniqueTags: sync.uniqueTags, apkoOverlay: sync.apkoOverlay, gracePeriod: sync.gracePeriod },
        ...(sync.expirationTime && { expiration: sync.expirationTime }),
      },
    }),
    ...(customOverlay && { customOverlay: overlayToV1(customOverlay) }),
    ...(createTime && { createTime, createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  });
}

// The fields that callers set.
function repoFromV1(repo: Partial<Repo> = {}): MessageInitShape<typeof RepoSchemaV2> {
  const { id = "", name = "", description = "", catalogTier = 0, bundles = [], aliases = [], activeTags = [] } = repo;
  const { syncConfig: sync, customOverlay } = repo;
  return {
    ...{ uid: id, name, description, bundles, aliases, activeTags },
    // The numbers up to the offset are no tiers in version 1, so they become an invalid one.
    catalogTier: catalogTier === 0 || catalogTier > TIER_OFFSET ? Math.max(0, catalogTier - TIER_OFFSET) : -1,
    ...(sync && {
      syncConfig: { source: sync.source, google: sync.google, amazon: sync.amazon, azure: sync.azure },
    }),
    ...(customOverlay && { customOverlay: overlayFromV1(customOverlay) }),
  };
}

function overlayToV1(overlay: CustomOverlayV2): MessageInitShape<typeof CustomOverlaySchema> {
  const { accounts } = overlay;
  return {
    ...copyShared(overlay),
    ...(accounts && {
      accounts: {
        runAs: accounts.runAs,
        users: accounts.users.map(({ username, uid, gid, groupName, shell, homeDir }) => ({
          ...{ userName: username, uid, gid, groupName, shell, homeDir },
        })),
        groups: accounts.groups.map(({ groupname, gid, members }) => ({ groupName: groupname, gid, members })),
      },
    }),
  };
}

function overlayFromV1(overlay: CustomOverlay): MessageInitShape<typeof CustomOverlaySchemaV2> {
  const { accounts } = overlay;
  return {
    ...copyShared(overlay),
    ...(accounts && {
      accounts: {
        runAs: accounts.runAs,
        users: accounts.users.map(({ userName, uid, gid = uid, groupName, shell, homeDir }) => ({
          ...{ username: userName, uid, gid, groupName, shell, homeDir },
        })),
        groups: accounts.groups.map(({ groupName, gid, members }) => ({ groupname: groupName, gid, members })),
      },
    }),
  };
}

// The fields of overlays with the same names in both versions.
function copyShared(overlay: CustomOverlay | CustomOverlayV2) {
  const { contents, environment, annotations, certificates } = overlay;
  const { guardedEntrypoint, preflight, commandOverride, failMode } = overlay;
  return {
    ...{ environment, annotations, guardedEntrypoint, failMode },
    preflight: preflight.map(({ tcp, path, timeout, interval, onFailure }) => ({
      ...{ tcp, path, timeout, interval, onFailure },
    })),
    ...(commandOverride && { commandOverride: { command: commandOverride.command, mode: commandOverride.mode } }),
    ...(contents && {
      contents: {
        packages: contents.packages,
        runtimeRepositories: contents.runtimeRepositories,
        runtimeKeyring: contents.runtimeKeyring.map(({ name, content }) => ({ name, content })),
      },
    }),
    ...(certificates && {
      certificates: {
        additional: certificates.additional.map(({ name, content }) => ({ name, content })),
        providers: certificates.providers,
      },
    }),
  };
}
