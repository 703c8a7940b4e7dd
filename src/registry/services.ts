// Every service of the registry. Registry of version 1 is a view of ReposService, TagsService and ImagesService, with
// methods that only version 1 has.
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import type { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import type { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { Vulnerabilities } from "#gen/chainguard/platform/registry/vulnerabilities_pb.js";
import { type ServedService, serve } from "../pipeline/method-table.js";
import type { ResourceDeps } from "../pipeline/resource/read.js";
import { deploymentHandlersV1 } from "./deployments/deployment-v1.js";
import type { ImageDeps } from "./images/image.js";
import { imageHandlersV1 } from "./images/image-v1.js";
import { imagesV2beta1 } from "./images/image-v2beta1.js";
import { MAX_REPO_REQUEST } from "./repos/repo-rules.js";
import { repoHandlersV1 } from "./repos/repo-v1.js";
import { reposV2beta1 } from "./repos/repo-v2beta1.js";
import { settingsHandlersV1 } from "./settings/settings-v1.js";
import { tagSummaryHandlersV1 } from "./tags/tag-summary-v1.js";
import { tagHandlersV1 } from "./tags/tag-v1.js";
import { tagsV2beta1 } from "./tags/tag-v2beta1.js";
import { createUnavailableHandlers, unavailableRegistryV1, unavailableVulnerabilitiesV1 } from "./unavailable-v1.js";

/** Creates the services of the registry. */
export function createRegistryServices(deps: ResourceDeps & ImageDeps): ServedService[] {
  const repos = reposV2beta1(deps);
  const tags = tagsV2beta1(deps);
  return [repos, tags, imagesV2beta1(deps), registryV1(repos, tags, deps), vulnerabilitiesV1()];
}

function registryV1(
  repos: ServedService<typeof ReposService>,
  tags: ServedService<typeof TagsService>,
  deps: ResourceDeps & ImageDeps,
) {
  const handlers = {
    ...repoHandlersV1(repos, deps),
    ...tagHandlersV1(tags, deps),
    ...tagSummaryHandlersV1,
    ...imageHandlersV1(deps),
    ...deploymentHandlersV1,
    ...settingsHandlersV1,
    ...createUnavailableHandlers(Registry, unavailableRegistryV1),
  };
  const large = { maxRequestBytes: MAX_REPO_REQUEST };
  return serve(Registry, handlers, { createRepo: large, updateRepo: large });
}

function vulnerabilitiesV1() {
  return serve(Vulnerabilities, createUnavailableHandlers(Vulnerabilities, unavailableVulnerabilitiesV1));
}
