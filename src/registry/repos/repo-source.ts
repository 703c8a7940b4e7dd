// Repos that are copied from another: which one that may be, and what a copy
// takes over from it.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { type SyncConfig, SyncConfigSchema } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import { isUidp, lineageOf, rootOf } from "../../kernel/uidp.js";
import { bitOf } from "../../pipeline/auth/authorize.js";
import { Caller } from "../../pipeline/auth/caller.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { RepoRow, Tx } from "../../store/port.js";
import { groupOfOrg, parseRepoPath } from "../oci/repo-path.js";
import { copiedFields, type RepoConfig, repoView } from "./repo.js";

/** How long images are copied after that was begun: 14 days, in milliseconds. */
const SYNC_LIFE_MS = 14 * 24 * 60 * 60 * 1000;

// The registry before the organisation; the name of an organisation may have a dot as well.
const HOST = /^(?:localhost|[^/]*[.:][^/]*)\/(?=[^/]*\/)/;

const pull = [Capability.CAP_REPO_BLOBS_GET, Capability.CAP_MANIFEST_LIST, Capability.CAP_TAG_LIST].map((one) => ({
  bit: bitOf(one),
}));

/** What fields have that nothing is said of. */
const unset = [[], 0];

/** A repo as it was, and its own fields as they shall be. */
export interface Change {
  /** Where the repo lies. */
  readonly groupUid: string;
  /** Its uid, where it exists already. */
  readonly uid?: string;
  readonly before: RepoConfig;
  readonly after: RepoConfig;
}

/** The fields of a repo as they are stored, and the repo it began to be copied from by the change. */
export interface ResolvedSource {
  readonly config: RepoConfig;
  readonly begun?: RepoRow;
}

/**
 * Works out the fields of a repo that may be copied from another: a copy takes over what the other
 * has when copying begins, and keeps it.
 *
 * @throws ApiError INVALID_ARGUMENT when there is no such source that the caller may pull from, or a
 * field of a copy would differ from its source's.
 */
export async function resolveSource(change: Change, call: UnaryCall): Promise<ResolvedSource> {
  const { before, after } = change;
  if (after.syncConfig === undefined) return { config: after };
  const { source, google, amazon, azure } = after.syncConfig;
  const going = before.syncConfig;
  const keep = (sync: SyncConfig): ResolvedSource => {
    requireCopied((field) => isOneOf(after[field], [before[field], ...unset]));
    const { catalogTier, bundles, aliases, activeTags } = before;
    const syncConfig = { ...sync, google, amazon, azure };
    return { config: { ...after, catalogTier, bundles, aliases, activeTags, syncConfig } };
  };
  if (going?.source === source) return keep(going);
  const found = await sourceNamed(source, change, call);
  if (going?.source === found.uid) return keep(going);
  const taken = repoView(found);
  // A value that is absent or unchanged does not ask for a difference.
  requireCopied((field) => isOneOf(after[field], [before[field], taken[field], ...unset]));
  const { catalogTier, bundles, aliases, activeTags } = taken;
  const expirationTime = timestampFromMs(call.startMs + SYNC_LIFE_MS);
  const syncConfig = create(SyncConfigSchema, { source: found.uid, google, amazon, azure, expirationTime });
  return { config: { ...after, catalogTier, bundles, aliases, activeTags, syncConfig }, begun: found };
}

function requireCopied(good: (field: (typeof copiedFields)[number]) => boolean): void {
  const broken = copiedFields.filter((field) => !good(field));
  if (broken.length === 0) return;
  throw invalidArgument(
    ...broken.map((field) => ({ field, description: `${field} of a repo that is copied must be that of its source` })),
  );
}

function isOneOf(value: unknown, allowed: readonly unknown[]): boolean {
  return allowed.some((one) => JSON.stringify(one) === JSON.stringify(value));
}

// One text for all causes: none tells whether a repo that the caller cannot see exists.
async function sourceNamed(source: string, { groupUid, uid }: Change, call: UnaryCall): Promise<RepoRow> {
  const found = await lookedUp(source, groupUid, call.tx);
  if (found && found.uid !== uid && (await mayPull(found.uid, call))) return found;
  const rule = "must name another repo, from which the caller may pull";
  throw invalidArgument({ field: "sync_config.source", description: `sync_config.source ${rule}` });
}

async function mayPull(uid: string, call: UnaryCall): Promise<boolean> {
  if ((await call.callerAt(uid)).holds(pull, uid)) return true;
  const rows = await call.tx.access.at(ANONYMOUS_UID, lineageOf(uid));
  return new Caller({ ...call.caller.principal, identityUid: ANONYMOUS_UID }, pull, rows).holdsNeeded(uid);
}

// A uid, `<org>/<repo>` with or without a registry's host, a tag and a digest, or the name of a repo
// in the root of the organisation.
async function lookedUp(source: string, groupUid: string, tx: Tx): Promise<RepoRow | undefined> {
  if (isUidp(source)) {
    const byUid = await tx.repos.get(source);
    if (byUid) return byUid;
  }
  const path = source.replace(/@[^@/]*$/, "").replace(/:[^:/]*$/, "");
  if (!path.includes("/")) return tx.repos.named(rootOf(groupUid), path);
  const place = parseRepoPath(path.replace(HOST, ""));
  const group = place && (await groupOfOrg(tx, place.org));
  return group === undefined ? undefined : tx.repos.named(group, place?.repo ?? "");
}
