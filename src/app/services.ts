// Every service of the platform, in every version, except for those of the issuer: those of the kinds (definitions.ts), those
// that manage no kind, and all of version 2beta1 under stable names.
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { PingService } from "#gen/chainguard/platform/ping/v2/ping_pb.js";
import { ImagesService } from "#gen/chainguard/platform/registry/v2/images_pb.js";
import { eventIdentitiesV1 } from "../events/identities-v1.js";
import { createIamServices } from "../iam/services.js";
import type { PageTokens } from "../kernel/page-token.js";
import type { ServedService } from "../pipeline/method-table.js";
import type { ResourceDefinition } from "../pipeline/resource/define.js";
import { createListResources, type ResourceDeps } from "../pipeline/resource/read.js";
import { createRegistryServices } from "../registry/services.js";
import type { Tx } from "../store/transaction.js";
import { definitions, type KindDeps, servedKinds } from "./definitions.js";
import { createUnavailableServices, unavailableServices } from "./unavailable-services.js";

export type PlatformDeps = Omit<
  KindDeps & Parameters<typeof createRegistryServices>[0],
  "listResources" | "definitions"
> & { readonly tokens: PageTokens<Tx> };

export function createPlatformServices(platform: PlatformDeps): ServedService[] {
  const deps = { ...platform, ...createResourceDeps(platform) };
  const services = [
    ...servedKinds.flatMap(({ serve }) => serve?.(deps) ?? []),
    ...createIamServices(deps),
    ...createRegistryServices(deps),
    eventIdentitiesV1(),
    ...createUnavailableServices(),
  ];
  return [...services, ...createStableServices(services)];
}

/** Creates the dependencies of the handlers of all resources. */
export function createResourceDeps({ tokens, ids }: Pick<PlatformDeps, "tokens" | "ids">): ResourceDeps {
  return { ids, listResources: createListResources(tokens), definitions };
}

// Stable services of no kind of resource.
const otherStable: readonly DescService[] = [
  ...[PingService, ImagesService],
  ...unavailableServices.flatMap(({ stable }) => stable ?? []),
];

/**
 * Creates the services of version 2, each with the handlers of its beta.
 *
 * @param all the definitions, which name their stable services
 * @throws TypeError when a service of version 2beta1 has no stable version, or one that differs
 */
export function createStableServices(
  services: readonly ServedService[],
  all: readonly ResourceDefinition[] = definitions,
): ServedService[] {
  const stable = [...all.flatMap((definition) => definition.stable ?? []), ...otherStable];
  const isBeta = ({ desc }: ServedService) => desc.typeName.includes(".v2beta1.");
  return services.filter(isBeta).map((beta) => {
    const typeName = beta.desc.typeName.replace(".v2beta1.", ".v2.");
    const desc = stable.find((one) => one.typeName === typeName);
    if (desc === undefined) throw new TypeError(`${beta.desc.typeName} has no stable version`);
    return serveAs(desc, beta);
  });
}

/**
 * Serves a service under another name as well. Names, paths and options are those of `stable`. Its messages are decoded
 * and encoded as those of `beta`, whose bytes and JSON are the same, so that handlers do not depend on the name.
 *
 * @throws TypeError when the two differ in a method
 */
export function serveAs(stable: DescService, beta: ServedService): ServedService {
  const desc: DescService = { ...stable, methods: [], method: {} };
  for (const method of stable.methods) {
    const original = beta.desc.method[method.localName];
    if (original?.methodKind !== method.methodKind) throw new TypeError(`${method} is not in ${beta.desc.typeName}`);
    const joined = { ...method, parent: desc, input: original.input, output: original.output } as DescMethod;
    desc.methods.push(joined);
    desc.method[method.localName] = joined;
  }
  return { ...beta, desc, published: stable };
}
