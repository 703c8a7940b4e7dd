// Every service of the platform but the issuer's own, in every version. Version 2 is
// version 2beta1 under other names: same methods, same messages, same handlers.

import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { SubscriptionsService } from "#gen/chainguard/platform/events/v2/subscriptions_pb.js";
import { AccountAssociationsService } from "#gen/chainguard/platform/iam/v2/account_associations_pb.js";
import { ExternalGroupRoleMappingsService } from "#gen/chainguard/platform/iam/v2/external_group_role_mappings_pb.js";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2/group_invites_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2/identities_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2/identity_providers_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2/roles_pb.js";
import { TermsService } from "#gen/chainguard/platform/iam/v2/terms_pb.js";
import { PingService } from "#gen/chainguard/platform/ping/v2/ping_pb.js";
import { ImagesService } from "#gen/chainguard/platform/registry/v2/images_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2/repos_pb.js";
import { TagsService } from "#gen/chainguard/platform/registry/v2/tags_pb.js";
import { AdvisoriesService } from "#gen/chainguard/platform/vulnerabilities/v2/advisories_pb.js";
import { eventServices } from "../events/services.js";
import { iamServices } from "../iam/services.js";
import type { ServedService } from "../pipeline/method-table.js";
import { registryServices } from "../registry/services.js";
import { vulnerabilityServices } from "../vulnerabilities/services.js";

/** What the services need. */
export type PlatformDeps = Parameters<typeof iamServices>[0] &
  Parameters<typeof registryServices>[0] &
  Parameters<typeof vulnerabilityServices>[0] &
  Parameters<typeof eventServices>[0];

/** The services, ready to be served. */
export function platformServices(deps: PlatformDeps): ServedService[] {
  const services = [
    ...iamServices(deps),
    ...registryServices(deps),
    ...vulnerabilityServices(deps),
    ...eventServices(deps),
  ];
  return [...services, ...stableServices(services)];
}

const stable: readonly DescService[] = [
  GroupsService,
  IdentitiesService,
  RolesService,
  RoleBindingsService,
  IdentityProvidersService,
  ExternalGroupRoleMappingsService,
  AccountAssociationsService,
  GroupInvitesService,
  TermsService,
  PingService,
  SubscriptionsService,
  ReposService,
  TagsService,
  ImagesService,
  AdvisoriesService,
];

/**
 * The services of version 2, each answered by what serves its beta.
 *
 * @throws TypeError at boot when a service of version 2beta1 has no stable version, or one that differs.
 */
export function stableServices(services: readonly ServedService[]): ServedService[] {
  const isBeta = ({ desc }: ServedService) => desc.typeName.includes(".v2beta1.");
  return services.filter(isBeta).map((beta) => {
    const typeName = beta.desc.typeName.replace(".v2beta1.", ".v2.");
    const desc = stable.find((one) => one.typeName === typeName);
    if (desc === undefined) throw new TypeError(`${beta.desc.typeName} has no stable version`);
    return serveAs(desc, beta);
  });
}

/**
 * A service served under another name as well. Names, paths and options are those of `stable`; its
 * messages are read and written as those of `beta`, whose bytes and JSON are the same, so that handlers
 * need not know by which name they were called.
 *
 * @throws TypeError at boot when the two differ in a method.
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
