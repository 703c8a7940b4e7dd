// IdentityProviders, version 1: a view of IdentityProvidersService.
import { type IdentityProvider, IdentityProviders } from "#gen/chainguard/platform/iam/identity_providers_pb.js";
import type { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { listInChunks, type ServedService, serve } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { rowsInParts } from "../../pipeline/resource/whole-list.js";
import { identityProviderView } from "./identity-provider.js";
import { identityProviderV1, oidcOf } from "./identity-provider-v1-view.js";
import { scimHandlersV1 } from "./scim-v1.js";

// `oidc` and not `oidc.client_secret`: an empty secret stays what it is, so that sending back what was
// read, which never holds the secret, does not lose it.
const whole = { paths: ["name", "description", "default_role", "oidc"] };

/** IdentityProviders, ready to be served. */
export function identityProvidersV1(served: ServedService<typeof IdentityProvidersService>) {
  const names = { uid: "id", parent: "parentId", identityProviderUid: "identityProviderId" };
  const v2 = operationsOf(served, names);
  return serve(IdentityProviders, {
    create: async ({ parentId, identityProvider }, call) =>
      identityProviderV1(
        await v2.createIdentityProvider({ parent: parentId, identityProvider: sent(identityProvider) }, call),
      ),

    update: async (provider, call) =>
      identityProviderV1(
        await v2.updateIdentityProvider({ identityProvider: sent(provider), updateMask: whole }, call),
      ),

    list: listInChunks(
      rowsInParts(
        (tx) => tx.identityProviders,
        (row, { startMs }) => identityProviderV1(identityProviderView(row, startMs)),
      ),
    ),

    delete: ({ id }, call) => v2.deleteIdentityProvider({ uid: id }, call),

    ...scimHandlersV1(v2),
  });
}

// How SCIM is set up and the times are the service's to set.
function sent({ id, name, description, defaultRole, configuration }: Partial<IdentityProvider> = {}) {
  return {
    ...{ uid: id ?? "", name: name ?? "", description: description ?? "", defaultRole: defaultRole ?? "" },
    ...oidcOf(configuration),
  };
}
