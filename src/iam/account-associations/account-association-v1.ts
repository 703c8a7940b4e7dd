// GroupAccountAssociations, version 1: a view of AccountAssociationsService. The id of an association is that
// of its group.
import { create } from "@bufbuild/protobuf";
import {
  type AccountAssociations,
  type AccountAssociationsFilter,
  AccountAssociationsSchema,
  GroupAccountAssociations,
} from "#gen/chainguard/platform/iam/account_associations_pb.js";
import type {
  AccountAssociation,
  AccountAssociationsService,
} from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { defineBodies } from "../../pipeline/body.js";
import { type Handlers, listInChunks } from "../../pipeline/handlers.js";
import { type ServedService, serve } from "../../pipeline/method-table.js";
import { createOperations } from "../../pipeline/operations.js";
import { findsResource } from "../../pipeline/resource/read.js";
import { requireUidFilter } from "../../pipeline/resource/rules.js";
import { createChunkReader } from "../../pipeline/resource/unpaginated-list.js";
import { accountAssociations, accountAssociationToProto } from "./account-association.js";

const fullMask = { paths: ["name", "description", "amazon", "google", "azure", "github", "chainguard"] };

/** Creates GroupAccountAssociations. */
export function accountAssociationsV1(served: ServedService<typeof AccountAssociationsService>) {
  const v2 = createOperations(served, { uid: "group", parent: "group", providerType: "accountType" });
  const handlers: Handlers<typeof GroupAccountAssociations> = {
    async create(association, call) {
      const request = { parent: association.group, accountAssociation: fromV1(association) };
      return toProtoV1(await v2.createAccountAssociation(request, call));
    },

    async update(association, call) {
      const request = { accountAssociation: fromV1(association), updateMask: fullMask };
      return toProtoV1(await v2.updateAccountAssociation(request, call));
    },

    list: listInChunks(
      createChunkReader(
        accountAssociations,
        (row) => toProtoV1(accountAssociationToProto(row)),
        ({ group, name }: AccountAssociationsFilter) => ({ request: { id: requireUidFilter("group", group), name } }),
      ),
    ),

    delete: ({ group }, call) => v2.deleteAccountAssociation({ uid: group }, call),

    // Provider types and check results have the same numbers in both versions.
    async check({ group, accountType }, call) {
      const request = { uid: group, providerType: accountType as number };
      const { status, reason, message } = await v2.checkAccountAssociation(request, call);
      return { ready: status as number, reason, message };
    },
  };
  const bodies = defineBodies(
    { message: AccountAssociationsSchema, readers: [GroupAccountAssociations.method.list] },
    findsResource(accountAssociations, (row) => toProtoV1(accountAssociationToProto(row))),
  );
  return serve(GroupAccountAssociations, handlers, {
    create: { body: bodies.created },
    update: { body: bodies.updated },
    // The published event of a deletion has no body.
    delete: { body: "none" },
  });
}

function fromV1(association: AccountAssociations) {
  const { group, name, description } = association;
  return { uid: group, name, description, ...copyAccounts(association) };
}

function toProtoV1(association: AccountAssociation): AccountAssociations {
  const { uid, name, description, createTime, updateTime } = association;
  return create(AccountAssociationsSchema, {
    ...{ group: uid, name, description },
    ...copyAccounts(association),
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  });
}

// The messages of accounts are equal in both versions.
function copyAccounts(association: AccountAssociation | AccountAssociations) {
  const { amazon, google, azure, github, chainguard } = association;
  return {
    ...(amazon && { amazon: { account: amazon.account } }),
    ...(google && { google: { projectId: google.projectId, projectNumber: google.projectNumber } }),
    ...(azure && { azure: { tenantId: azure.tenantId, clientIds: azure.clientIds } }),
    ...(github && { github: { appInstallations: copyInstallations(github.appInstallations) } }),
    ...(chainguard && { chainguard: { serviceBindings: chainguard.serviceBindings } }),
  };
}

interface Installations {
  readonly installations: readonly { readonly installationId: bigint; readonly name: string }[];
}

function copyInstallations(byApp: Readonly<Record<string, Installations>>) {
  const entries = Object.entries(byApp).map(([app, { installations }]) => {
    const same = installations.map(({ installationId, name }) => ({ installationId, name }));
    return [app, { installations: same }] as const;
  });
  return Object.fromEntries(entries);
}
