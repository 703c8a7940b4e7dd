// Every service of the registry, ready to be served.
import type { ServedService } from "../pipeline/method-table.js";
import type { ImageDeps } from "./images/image-source.js";
import { imagesV2beta1 } from "./images/image-v2beta1.js";
import type { RegistryDeps } from "./registry-deps.js";
import { registryV1 } from "./registry-v1.js";
import { reposV2beta1 } from "./repos/repo-v2beta1.js";
import { tagsV2beta1 } from "./tags/tag-v2beta1.js";
import { vulnerabilitiesV1 } from "./vulnerabilities-v1.js";

/** The services of the registry. */
export function registryServices(deps: RegistryDeps & ImageDeps): ServedService[] {
  const repos = reposV2beta1(deps);
  const tags = tagsV2beta1(deps);
  return [repos, tags, imagesV2beta1(deps), registryV1({ repos, tags }, deps), vulnerabilitiesV1()];
}
