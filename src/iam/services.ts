// Every service of the domain, ready to be served.
import type { ServedService } from "../rpc/method-table.js";
import { accountAssociationsV2beta1 } from "./account-associations/account-association-v2beta1.js";
import { groupInvitesV2beta1 } from "./group-invites/group-invite-v2beta1.js";
import { groupMappingsV2beta1 } from "./group-mappings/group-mapping-v2beta1.js";
import { groupsV1 } from "./groups/group-v1.js";
import { groupsV2beta1 } from "./groups/group-v2beta1.js";
import type { RootCreation } from "./groups/root-creation.js";
import type { IamDeps } from "./iam-deps.js";
import { identitiesV2beta1 } from "./identities/identity-v2beta1.js";
import { identityProvidersV2beta1 } from "./identity-providers/identity-provider-v2beta1.js";
import { pingV2beta1 } from "./ping-v2beta1.js";
import { roleBindingsV2beta1 } from "./role-bindings/role-binding-v2beta1.js";
import { rolesV1 } from "./roles/role-v1.js";
import { rolesV2beta1 } from "./roles/role-v2beta1.js";
import { termsV2beta1 } from "./terms/terms-v2beta1.js";

/** The services; what they need differs in one setting alone. */
export function iamServices(deps: IamDeps & { readonly rootCreation: RootCreation }): ServedService[] {
  const groups = groupsV2beta1(deps);
  const roles = rolesV2beta1(deps);
  return [
    groups,
    groupsV1(groups),
    identitiesV2beta1(deps),
    roles,
    rolesV1(roles),
    roleBindingsV2beta1(deps),
    identityProvidersV2beta1(deps),
    groupMappingsV2beta1(deps),
    accountAssociationsV2beta1(deps),
    groupInvitesV2beta1(deps),
    termsV2beta1(deps),
    pingV2beta1(),
  ];
}
