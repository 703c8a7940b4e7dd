// Every service of the registry, ready to be served.
import type { ServedService } from "../rpc/method-table.js";
import { type ImageDeps, imagesV2beta1 } from "./images/image-v2beta1.js";
import type { RegistryDeps } from "./registry-deps.js";
import { reposV2beta1 } from "./repos/repo-v2beta1.js";
import { tagsV2beta1 } from "./tags/tag-v2beta1.js";

/** The services of the registry. */
export function registryServices(deps: RegistryDeps & ImageDeps): ServedService[] {
  return [reposV2beta1(deps), tagsV2beta1(deps), imagesV2beta1(deps)];
}
