// Every service of iam, and PingService, which any caller may call.
import { PingService as PingServiceV1 } from "#gen/chainguard/platform/ping/ping_pb.js";
import { PingService } from "#gen/chainguard/platform/ping/v2beta1/ping_pb.js";
import type { QuotaLimits } from "../kernel/quotas.js";
import { type FormerPath, type ServedService, serve } from "../pipeline/method-table.js";
import { createOperations } from "../pipeline/operations.js";
import { accountAssociationsV2beta1 } from "./account-associations/account-association.js";
import { accountAssociationsV1 } from "./account-associations/account-association-v1.js";
import { bindingsV1 } from "./bindings/bindings-v1.js";
import { groupInvitesV2beta1 } from "./group-invites/group-invite.js";
import { groupInvitesV1 } from "./group-invites/group-invite-v1.js";
import { groupMappingsV2beta1 } from "./group-mappings/group-mapping.js";
import { groupMappingsV1 } from "./group-mappings/group-mapping-v1.js";
import { groupsV1 } from "./groups/group-v1.js";
import { type GroupsDeps, groupsV2beta1 } from "./groups/group-v2beta1.js";
import { identitiesV1 } from "./identities/identity-v1.js";
import { identitiesV2beta1 } from "./identities/identity-v2beta1.js";
import { tokensV1 } from "./identities/tokens-v1.js";
import { identityProvidersV1 } from "./identity-providers/identity-provider-v1.js";
import { type IdentityProviderDeps, identityProvidersV2beta1 } from "./identity-providers/identity-provider-v2beta1.js";
import { roleBindingsV1 } from "./role-bindings/role-binding-v1.js";
import { roleBindingsV2beta1 } from "./role-bindings/role-binding-v2beta1.js";
import { rolesV1 } from "./roles/role-v1.js";
import { rolesV2beta1 } from "./roles/role-v2beta1.js";
import { termsV1, termsV2beta1 } from "./terms/terms.js";

export interface IamDeps extends GroupsDeps, IdentityProviderDeps {
  /** The quotas that version 1 shows. */
  readonly limits: QuotaLimits;
}

// Clients of version 1 move to version 2 by the prefix of its paths alone (docs/v1.md), so version 2 is served at the
// spellings of version 1 as well.
const formerPaths = {
  identities: [
    { current: "/identities:lookupIdentity", former: "/identities/lookup" },
    { current: "/identities:updateIdentityMetadata", former: "/identities/metadata" },
  ],
  roleBindings: [
    { current: "/roleBindings", former: "/rolebindings" },
    { current: "/roleBindings:batchCreate", former: "/rolebindings/batch/{parent=**}" },
  ],
  accountAssociations: [
    { current: "/accountAssociations", former: "/account_associations" },
    {
      current: "/accountAssociations/{uid=**}:checkAccountAssociation",
      former: "/account_associations/{uid=**}:check",
    },
  ],
  groupInvites: [{ current: "/groupInvites", former: "/group_invites" }],
} as const satisfies Readonly<Record<string, readonly FormerPath[]>>;

export function createIamServices(deps: IamDeps): ServedService[] {
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
    { ...identities, formerPaths: formerPaths.identities },
    identitiesV1(identities),
    roles,
    rolesV1(roles),
    { ...roleBindings, formerPaths: formerPaths.roleBindings },
    roleBindingsV1(roleBindings),
    identityProviders,
    identityProvidersV1(identityProviders, deps),
    groupMappings,
    groupMappingsV1(groupMappings),
    { ...accountAssociations, formerPaths: formerPaths.accountAssociations },
    accountAssociationsV1(accountAssociations),
    { ...groupInvites, formerPaths: formerPaths.groupInvites },
    groupInvitesV1(groupInvites),
    terms,
    termsV1(terms),
    ping,
    pingV1(ping),
    bindingsV1(deps),
    tokensV1(),
  ];
}

/** Creates PingService. */
function pingV2beta1() {
  return serve(PingService, { ping: () => ({ response: "pong" }) });
}

/** Creates PingService of version 1. */
function pingV1(served: ServedService<typeof PingService>) {
  const v2 = createOperations(served);
  return serve(PingServiceV1, {
    ping: async (_, call) => ({ response: (await v2.ping({}, call)).response }),
  });
}
