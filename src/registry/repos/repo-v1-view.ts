// Repos between their versions: the tiers have other numbers, the accounts of an
// overlay other names.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type CustomOverlay,
  type CustomOverlaySchema,
  type Repo,
  RepoSchema,
} from "#gen/chainguard/platform/registry/repo_pb.js";
import type {
  CustomOverlaySchema as CustomOverlaySchemaV2,
  CustomOverlay as CustomOverlayV2,
  RepoSchema as RepoSchemaV2,
  Repo as RepoV2,
} from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";

/** By how much the numbers of tiers differ; 0 is 0 in both versions. */
const TIER_OFFSET = 3;

/** A repo of version 2 as version 1 shows it, with the readme that is a resource of its own there. */
export function repoV1(repo: RepoV2, readme: string): Repo {
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
    ...(customOverlay && { customOverlay: overlayV1(customOverlay) }),
    ...(createTime && { createTime, createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  });
}

/** What a caller says of a repo in version 1 as version 2 has it; the rest is not the caller's to set. */
export function repoFromV1(repo: Partial<Repo> = {}): MessageInitShape<typeof RepoSchemaV2> {
  const { id = "", name = "", description = "", catalogTier = 0, bundles = [], aliases = [], activeTags = [] } = repo;
  const { syncConfig: sync, customOverlay } = repo;
  return {
    ...{ uid: id, name, description, bundles, aliases, activeTags },
    // The numbers between are no tiers in version 1, so they must not become any.
    catalogTier: catalogTier === 0 || catalogTier > TIER_OFFSET ? Math.max(0, catalogTier - TIER_OFFSET) : -1,
    ...(sync && {
      syncConfig: { source: sync.source, google: sync.google, amazon: sync.amazon, azure: sync.azure },
    }),
    ...(customOverlay && { customOverlay: overlayFromV1(customOverlay) }),
  };
}

function overlayV1(overlay: CustomOverlayV2): MessageInitShape<typeof CustomOverlaySchema> {
  const { accounts } = overlay;
  return {
    ...sharedOf(overlay),
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
    ...sharedOf(overlay),
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

// What both versions call by the same names.
function sharedOf({ contents, environment, annotations, certificates }: CustomOverlay | CustomOverlayV2) {
  return {
    environment,
    annotations,
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
