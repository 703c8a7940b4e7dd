// Every service of version 2beta1 under its stable name as well.
import type { DescService } from "@bufbuild/protobuf";
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
import type { ServedService } from "../pipeline/method-table.js";
import { servedAs } from "../pipeline/stable.js";

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
    return servedAs(desc, beta);
  });
}
