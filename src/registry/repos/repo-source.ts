// Repos that are copied from another: which source is allowed, and which fields a copy takes from it.
import { create } from "@bufbuild/protobuf";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { type SyncConfig, SyncConfigSchema } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { invalidArgument } from "../../kernel/errors.js";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import { timestampOf } from "../../kernel/time.js";
import { isUidp, lineageOf, rootOf } from "../../kernel/uidp.js";
import { bitOf } from "../../pipeline/auth/authorize.js";
import { Caller } from "../../pipeline/auth/caller.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { type RepoRow, repoKind } from "../../store/registry/repos.js";
import type { Tx } from "../../store/transaction.js";
import { locateRepo, parseRepoPath } from "../oci/repo-path.js";
import { copiedFields, type InheritedField, type RepoConfig, repoToProto } from "./repo.js";

/** How long images are copied from the start: 14 days, in milliseconds. */
const SYNC_LIFE_MS = 14 * 24 * 60 * 60 * 1000;

// The registry before the organisation; the name of an organisation may have a dot as well.
const HOST = /^(?:localhost|[^/]*[.:][^/]*)\/(?=[^/]*\/)/;

const pull = [Capability.CAP_REPO_BLOBS_GET, Capability.CAP_MANIFEST_LIST, Capability.CAP_TAG_LIST].map((one) => ({
  bit: bitOf(one),
}));

type CopiedField = (typeof copiedFields)[number];

/** The values of fields that are not set. */
const unset = [[], 0];

/** The fields of a repo that a change names. */
export type NamedFields = Partial<RepoConfig> & { readonly description?: string };

/** The fields of a repo before a change and after it. */
export interface Change {
  readonly groupUid: string;
  /** Its uid, where it exists already. */
  readonly uid?: string;
  readonly before: RepoConfig;
  /** The fields that the request names. */
  readonly named: NamedFields;
  /** Those of the fields before that its caller has left out. */
  readonly inherited?: readonly InheritedField[];
}

/** The fields to store, and the source where the change starts a copy. */
export interface ResolvedSource {
  readonly config: RepoConfig;
  readonly startedFrom?: RepoRow;
  /** The fields of a copy that its caller leaves out. */
  readonly inherited?: readonly InheritedField[];
}

/**
 * Resolves the fields of a repo that may be a copy. A copy takes the fields of its source when copying starts,
 * and keeps them; a request may name the present value of the source, which the copy takes then.
 *
 * @throws ApiError INVALID_ARGUMENT when there is no such source that the caller may pull from, or a
 * field of a copy would differ from its source's.
 */
export async function resolveSource(change: Change, call: UnaryCall): Promise<ResolvedSource> {
  const { before, named } = change;
  const after: RepoConfig = { ...before, ...named };
  if (after.syncConfig === undefined) return { config: after };
  const { source, google, amazon, azure } = after.syncConfig;
  const current = before.syncConfig;
  const keep = async (sync: SyncConfig): Promise<ResolvedSource> => {
    const others = copiedFields.filter((field) => !isOneOf(after[field], [before[field], ...unset]));
    const present = others.length > 0 ? await findPresent(sync.source, call) : undefined;
    requireCopied((field) => !others.includes(field) || (present && isOneOf(after[field], [present[field]])) === true);
    const taken = present && Object.fromEntries(others.map((field) => [field, present[field]]));
    const { catalogTier, bundles, aliases, activeTags } = { ...before, ...taken };
    const syncConfig = { ...sync, google, amazon, azure };
    const inherited = findInherited(change, change.inherited ?? []);
    return { config: { ...after, catalogTier, bundles, aliases, activeTags, syncConfig }, inherited };
  };
  if (current?.source === source) return keep(current);
  const found = await getSource(source, change, call);
  if (current?.source === found.uid) return keep(current);
  const copied = repoToProto(found);
  // A value that is absent or unchanged is no conflict with the source.
  requireCopied((field) => isOneOf(after[field], [before[field], copied[field], ...unset]));
  const { catalogTier, bundles, aliases, activeTags } = copied;
  const expirationTime = timestampOf(call.startMs + SYNC_LIFE_MS);
  const syncConfig = create(SyncConfigSchema, { source: found.uid, google, amazon, azure, expirationTime });
  const config = { ...after, catalogTier, bundles, aliases, activeTags, syncConfig };
  // The readme comes from the source with every start; a description, only where the repo has none.
  const inherited = findInherited(change, [...copiedFields, "readme"]);
  return { config, startedFrom: found, inherited };
}

// Of the fields, those that the request does not name with a value. A field that it names without one is left out.
function findInherited({ named }: Change, unnamed: readonly InheritedField[]): readonly InheritedField[] {
  const all = new Set<InheritedField>(unnamed);
  for (const field of copiedFields) {
    if (!(field in named)) continue;
    if (isOneOf(named[field], unset)) all.add(field);
    else all.delete(field);
  }
  if (named.description !== undefined) all.delete("description");
  return [...all];
}

// The source as it is now, where it still exists and the caller may still pull from it.
async function findPresent(uid: string, call: UnaryCall): Promise<RepoConfig | undefined> {
  const row = await call.tx.table(repoKind).find(uid);
  return row && (await canPull(uid, call)) ? repoToProto(row) : undefined;
}

function requireCopied(isCopied: (field: CopiedField) => boolean): void {
  const broken = copiedFields.filter((field) => !isCopied(field));
  if (broken.length === 0) return;
  throw invalidArgument(
    ...broken.map((field) => ({ field, rule: "of a repo that is copied must be that of its source" })),
  );
}

function isOneOf(value: unknown, allowed: readonly unknown[]): boolean {
  return allowed.some((one) => JSON.stringify(one) === JSON.stringify(value));
}

// Every cause has the same text, so that callers cannot tell whether a hidden repo exists.
async function getSource(source: string, { groupUid, uid }: Change, call: UnaryCall): Promise<RepoRow> {
  const found = await findRepo(source, groupUid, call.tx);
  if (found && found.uid !== uid && (await canPull(found.uid, call))) return found;
  const rule = "must name another repo, from which the caller may pull";
  throw invalidArgument({ field: "sync_config.source", rule: `${rule}` });
}

async function canPull(uid: string, call: UnaryCall): Promise<boolean> {
  if ((await call.callerAt(uid)).holds(pull, uid)) return true;
  const rows = await call.tx.access.findGrantsAt(ANONYMOUS_UID, lineageOf(uid));
  return new Caller({ ...call.caller.principal, identityUid: ANONYMOUS_UID }, pull, rows).holdsNeeded(uid);
}

// A source is a uid, `<org>/<repo>` with or without a host, a tag and a digest, or the name of a repo in the root
// group of the organisation.
async function findRepo(source: string, groupUid: string, tx: Tx): Promise<RepoRow | undefined> {
  if (isUidp(source)) {
    const byUid = await tx.table(repoKind).find(source);
    if (byUid) return byUid;
  }
  const path = source.replace(/@[^@/]*$/, "").replace(/:[^:/]*$/, "");
  if (!path.includes("/")) return tx.table(repoKind).findByName(rootOf(groupUid), path);
  const target = parseRepoPath(path.replace(HOST, ""));
  const location = target && (await locateRepo(tx, target));
  return location && tx.table(repoKind).findByName(location.groupUid, target.repo);
}
