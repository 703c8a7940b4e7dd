// Every service of the registry. Registry of version 1 is a view of ReposService, TagsService and ImagesService, with
// methods that only version 1 has.
import { Registry } from "#gen/chainguard/platform/registry/registry_pb.js";
import type { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import type { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { Vulnerabilities } from "#gen/chainguard/platform/registry/vulnerabilities_pb.js";
import { unavailableRegistryV1, unavailableVulnerabilitiesV1 } from "../kernel/unavailable-methods.js";
import { type ServedService, serve } from "../pipeline/method-table.js";
import type { ResourceDeps } from "../pipeline/resource/read.js";
import { createUnavailableHandlers } from "../pipeline/unavailable.js";
import { deploymentBodiesV1, deploymentHandlersV1 } from "./deployments/deployment.js";
import { type ImageDeps, imagesV2beta1 } from "./images/image.js";
import { imageHandlersV1 } from "./images/image-v1.js";
import { MAX_REPO_REQUEST } from "./repos/repo-rules.js";
import { repoBodiesV1, repoHandlersV1 } from "./repos/repo-v1.js";
import { type RepoDeps, reposV2beta1 } from "./repos/repo-v2beta1.js";
import { settingsBodiesV1, settingsHandlersV1 } from "./settings/settings-v1.js";
import { tagsV2beta1 } from "./tags/tag.js";
import { tagBodiesV1, tagHandlersV1, tagSummaryHandlersV1 } from "./tags/tag-v1.js";

export function createRegistryServices(deps: RepoDeps & ImageDeps): ServedService[] {
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
    ...tagSummaryHandlersV1(deps),
    ...imageHandlersV1(deps),
    ...deploymentHandlersV1,
    ...settingsHandlersV1,
    ...createUnavailableHandlers(Registry, unavailableRegistryV1),
  };
  const maxRequestBytes = MAX_REPO_REQUEST;
  return serve(Registry, handlers, {
    createRepo: { body: repoBodiesV1.created, maxRequestBytes },
    updateRepo: { body: repoBodiesV1.updated, maxRequestBytes },
    deleteRepo: { body: repoBodiesV1.deleted },
    createTag: { body: tagBodiesV1.created },
    updateTag: { body: tagBodiesV1.updated },
    deleteTag: { body: tagBodiesV1.deleted },
    createDeployment: { body: deploymentBodiesV1.created },
    updateDeployment: { body: deploymentBodiesV1.updated },
    updateRegistrySettings: { body: settingsBodiesV1.updated },
  });
}

function vulnerabilitiesV1() {
  return serve(Vulnerabilities, createUnavailableHandlers(Vulnerabilities, unavailableVulnerabilitiesV1));
}
