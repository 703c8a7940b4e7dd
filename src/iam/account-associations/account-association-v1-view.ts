import { create } from "@bufbuild/protobuf";
import {
  type AccountAssociations,
  AccountAssociationsSchema,
} from "#gen/chainguard/platform/iam/account_associations_pb.js";
import type { AccountAssociation } from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";

/** An account association of version 2 as version 1 shows it. */
export function accountAssociationV1(association: AccountAssociation): AccountAssociations {
  const { uid, name, description, createTime, updateTime } = association;
  return create(AccountAssociationsSchema, {
    ...{ group: uid, name, description },
    ...accountsOf(association),
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  });
}

/** The accounts of an association of either version, to be shown or sent in the other. */
export function accountsOf(association: AccountAssociation | AccountAssociations) {
  const { amazon, google, azure, github, chainguard } = association;
  return {
    ...(amazon && { amazon: { account: amazon.account } }),
    ...(google && { google: { projectId: google.projectId, projectNumber: google.projectNumber } }),
    ...(azure && { azure: { tenantId: azure.tenantId, clientIds: azure.clientIds } }),
    ...(github && { github: { appInstallations: installationsOf(github.appInstallations) } }),
    ...(chainguard && { chainguard: { serviceBindings: chainguard.serviceBindings } }),
  };
}

interface Installations {
  readonly installations: readonly { readonly installationId: bigint; readonly name: string }[];
}

function installationsOf(byApp: Readonly<Record<string, Installations>>) {
  const entries = Object.entries(byApp).map(([app, { installations }]) => {
    const same = installations.map(({ installationId, name }) => ({ installationId, name }));
    return [app, { installations: same }] as const;
  });
  return Object.fromEntries(entries);
}
