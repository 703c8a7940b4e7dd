// Every service of the domain, ready to be served.
import type { QuotaLimits } from "../kernel/quotas.js";
import type { ServedService } from "../pipeline/method-table.js";
import type { Store } from "../store/port.js";
import { accountAssociationsV1 } from "./account-associations/account-association-v1.js";
import { accountAssociationsV2beta1 } from "./account-associations/account-association-v2beta1.js";
import { bindingsV1 } from "./bindings/bindings-v1.js";
import { groupInvitesV1 } from "./group-invites/group-invite-v1.js";
import { groupInvitesV2beta1 } from "./group-invites/group-invite-v2beta1.js";
import { groupMappingsV1 } from "./group-mappings/group-mapping-v1.js";
import { groupMappingsV2beta1 } from "./group-mappings/group-mapping-v2beta1.js";
import { groupsV1 } from "./groups/group-v1.js";
import { groupsV2beta1 } from "./groups/group-v2beta1.js";
import type { RootCreation } from "./groups/root-creation.js";
import type { IamDeps } from "./iam-deps.js";
import { identitiesV1 } from "./identities/identity-v1.js";
import { identitiesV2beta1 } from "./identities/identity-v2beta1.js";
import { identityProvidersV1 } from "./identity-providers/identity-provider-v1.js";
import { identityProvidersV2beta1 } from "./identity-providers/identity-provider-v2beta1.js";
import { pingV1 } from "./ping-v1.js";
import { pingV2beta1 } from "./ping-v2beta1.js";
import { roleBindingsV1 } from "./role-bindings/role-binding-v1.js";
import { roleBindingsV2beta1 } from "./role-bindings/role-binding-v2beta1.js";
import { rolesV1 } from "./roles/role-v1.js";
import { rolesV2beta1 } from "./roles/role-v2beta1.js";
import { termsV1 } from "./terms/terms-v1.js";
import { termsV2beta1 } from "./terms/terms-v2beta1.js";

/**
 * The services.
 *
 * @param deps with who may create root groups, and the quotas that version 1 shows
 */
export function iamServices(
  deps: IamDeps & { readonly rootCreation: RootCreation; readonly store: Store; readonly limits: QuotaLimits },
): ServedService[] {
  const groups = groupsV2beta1(deps);
  const identities = identitiesV2beta1(deps);
  const roles = rolesV2beta1(deps);
  const roleBindings = roleBindingsV2beta1(deps);
  const identityProviders = identityProvidersV2beta1(deps);
  const groupMappings = groupMappingsV2beta1(deps);
  const accountAssociations = accountAssociationsV2beta1(deps);
  const groupInvites = groupInvitesV2beta1(deps);
  const terms = termsV2beta1(deps);
  const ping = pingV2beta1();
  return [
    groups,
    groupsV1(groups, deps),
    identities,
    identitiesV1(identities),
    roles,
    rolesV1(roles),
    roleBindings,
    roleBindingsV1(roleBindings),
    identityProviders,
    identityProvidersV1(identityProviders),
    groupMappings,
    groupMappingsV1(groupMappings),
    accountAssociations,
    accountAssociationsV1(accountAssociations),
    groupInvites,
    groupInvitesV1(groupInvites),
    terms,
    termsV1(terms),
    ping,
    pingV1(ping),
    bindingsV1(deps),
  ];
}
