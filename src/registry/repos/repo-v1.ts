// Repos, version 1: a view of ReposService. What is two resources there, a repo
// and its readme, is one here.
import { setImmediate as turnOver } from "node:timers/promises";
import type { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import type { GetRepoCountBySourceRequest, Repo, RepoFilter } from "#gen/chainguard/platform/registry/repo_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { deadlineExceeded, permissionDenied, resourceExhausted } from "../../kernel/errors.js";
import { namesOf } from "../../pipeline/auth/authorize.js";
import type { CallContext, UnaryCall } from "../../pipeline/call.js";
import {
  capabilitiesFor,
  type Handlers,
  listInChunks,
  type ServedService,
  withPreparation,
} from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { partQuery, rowsInParts } from "../../pipeline/resource/whole-list.js";
import type { ListPosition, RepoRow, Store, Tx } from "../../store/port.js";
import type { ImageDeps } from "../images/image-source.js";
import { isRepoName } from "../oci/repo-path.js";
import { repoView, sourceOf } from "./repo.js";
import { repoFromV1, repoV1 } from "./repo-v1-view.js";
import { foundRepo } from "./repo-v2beta1.js";

/** How many repos a list reads at once: one with its overlay and its readme may take half a megabyte. */
const PART_SIZE = 100;
/** How many repos are looked through to count some of them. */
const MAX_COUNTED = 50_000;

const paths = ["name", "description", "catalog_tier", "bundles", "aliases", "active_tags", "sync_config"];
const whole = { paths: [...paths, "custom_overlay"] };
const update = capabilitiesFor(ReposService.method.updateRepo);
const readReadme = capabilitiesFor(ReposService.method.getRepoReadme);
const changeReadme = capabilitiesFor(ReposService.method.updateRepoReadme);

/** The part of Registry that is about repos. */
export function repoHandlersV1(served: ServedService<typeof ReposService>, { store }: Pick<ImageDeps, "store">) {
  const v2 = operationsOf(served, { uid: "id", parent: "parentId" });
  const readmes = operationsOf(served, { uid: "id", content: "readme" });

  // A readme is the operator's to change. To say nothing of it is no wish to be rid of it, but of who may be.
  async function withReadme(uid: string, readme: string, call: UnaryCall): Promise<RepoRow> {
    const row = await foundRepo(uid, call.tx);
    if (readme === row.readme) return row;
    const may = call.caller.holds(changeReadme, uid);
    if (readme === "" && (!may || sourceOf(row) !== undefined)) return row;
    if (!may) throw permissionDenied(`${namesOf(changeReadme)} at ${uid}`);
    await readmes.updateRepoReadme({ repoReadme: { uid, content: readme }, updateMask: { paths: ["content"] } }, call);
    return foundRepo(uid, call.tx);
  }

  return {
    async createRepo({ parentId, repo, preventExisting }, call) {
      const fields = repoFromV1(repo);
      const name = repo?.name ?? "";
      const existing = preventExisting || !isRepoName(name) ? undefined : await call.tx.repos.named(parentId, name);
      // Who may create alone changes nothing that is there: version 2 then says so.
      const { uid } =
        existing && call.caller.holds(update, existing.uid)
          ? await v2.updateRepo({ repo: { ...fields, uid: existing.uid }, updateMask: whole }, call)
          : await v2.createRepo({ parent: parentId, repo: fields }, call);
      return answered(await withReadme(uid, repo?.readme ?? "", call), call);
    },

    async updateRepo(repo, call) {
      const { uid } = await v2.updateRepo({ repo: repoFromV1(repo), updateMask: whole }, call);
      return answered(await withReadme(uid, repo.readme, call), call);
    },

    listRepos: listInChunks(rowsInParts<RepoFilter, RepoRow, Repo>((tx) => tx.repos, shown, undefined, PART_SIZE)),

    deleteRepo: ({ id }, call) => v2.deleteRepo({ uid: id }, call),

    // In units of work of their own, so that a long count holds nobody up.
    getRepoCountBySource: withPreparation({
      prepare: ({ id }: GetRepoCountBySourceRequest, call) => countCopies(id, store, call),
      async handle({ id }, { tx }, count) {
        await foundRepo(id, tx);
        return { count: BigInt(count) };
      },
    }),
  } satisfies Partial<Handlers<typeof Registry>>;
}

function shown(row: RepoRow) {
  return repoV1(repoView(row), row.readme);
}

// A readme is shown to those alone who may read it, as in version 2.
function answered(row: RepoRow, { caller }: UnaryCall) {
  return caller.holds(readReadme, row.uid) ? shown(row) : shown({ ...row, readme: "" });
}

// Of the copies that the caller may see: where others copy to is theirs.
async function countCopies(source: string, store: Store, call: CallContext): Promise<number> {
  const { deadlineMs } = call;
  let [count, seen] = [0, 0];
  let after: ListPosition | undefined;
  do {
    const part = async (tx: Tx) => {
      const visible = (await call.callerEverywhere(tx)).visibleGroups();
      return tx.repos.list({ ...partQuery({}, { visible }, after), limit: PART_SIZE });
    };
    const { rows, next } = await store.read(part, { deadlineMs });
    count += rows.filter((row) => sourceOf(row) === source).length;
    seen += rows.length;
    if (seen > MAX_COUNTED) throw resourceExhausted(`count: more than ${MAX_COUNTED} repos to look through`);
    if (call.signal.aborted) throw deadlineExceeded();
    after = next;
    await turnOver();
  } while (after !== undefined);
  return count;
}
