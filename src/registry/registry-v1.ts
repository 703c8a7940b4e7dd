// Registry, version 1: views of ReposService, TagsService and ImagesService, and
// what version 1 alone has.
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import type { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import type { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { type ServedService, serve } from "../pipeline/method-table.js";
import { deploymentHandlersV1 } from "./deployments/deployment-v1.js";
import type { ImageDeps } from "./images/image-source.js";
import { imageHandlersV1 } from "./images/image-v1.js";
import type { RegistryDeps } from "./registry-deps.js";
import { MAX_REPO_REQUEST } from "./repos/repo-rules.js";
import { repoHandlersV1 } from "./repos/repo-v1.js";
import { settingsHandlersV1 } from "./settings/settings-v1.js";
import { tagSummaryHandlersV1 } from "./tags/tag-summary-v1.js";
import { tagHandlersV1 } from "./tags/tag-v1.js";
import { refusalsOf, unavailableRegistryV1 } from "./unavailable-v1.js";

/** The services of version 2 that {@link registryV1} is a view of. */
export interface RegistryV2 {
  readonly repos: ServedService<typeof ReposService>;
  readonly tags: ServedService<typeof TagsService>;
}

/** Registry, ready to be served. */
export function registryV1({ repos, tags }: RegistryV2, deps: RegistryDeps & ImageDeps) {
  const handlers = {
    ...repoHandlersV1(repos, deps),
    ...tagHandlersV1(tags, deps),
    ...tagSummaryHandlersV1,
    ...imageHandlersV1(deps),
    ...deploymentHandlersV1,
    ...settingsHandlersV1,
    ...refusalsOf(Registry, unavailableRegistryV1),
  };
  const large = { maxRequestBytes: MAX_REPO_REQUEST };
  return serve(Registry, handlers, { createRepo: large, updateRepo: large });
}
