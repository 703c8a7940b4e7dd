// GroupAccountAssociations, version 1: a view of AccountAssociationsService. An
// association goes by the group it belongs to.
import {
  type AccountAssociations,
  type AccountAssociationsFilter,
  GroupAccountAssociations,
} from "#gen/chainguard/platform/iam/account_associations_pb.js";
import type { AccountAssociationsService } from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { listInChunks, type ServedService, serve } from "../../pipeline/method-table.js";
import { operationsOf } from "../../pipeline/operations.js";
import { rowsInParts } from "../../pipeline/resource/whole-list.js";
import { groupOf } from "../groups/group-filter.js";
import { accountAssociationView } from "./account-association.js";
import { accountAssociationV1, accountsOf } from "./account-association-v1-view.js";

const whole = { paths: ["name", "description", "amazon", "google", "azure", "github", "chainguard"] };

/** GroupAccountAssociations, ready to be served. */
export function accountAssociationsV1(served: ServedService<typeof AccountAssociationsService>) {
  const v2 = operationsOf(served, { uid: "group", parent: "group", providerType: "accountType" });
  return serve(GroupAccountAssociations, {
    async create(association, call) {
      const request = { parent: association.group, accountAssociation: sent(association) };
      return accountAssociationV1(await v2.createAccountAssociation(request, call));
    },

    async update(association, call) {
      const request = { accountAssociation: sent(association), updateMask: whole };
      return accountAssociationV1(await v2.updateAccountAssociation(request, call));
    },

    list: listInChunks(
      rowsInParts(
        (tx) => tx.accountAssociations,
        (row) => accountAssociationV1(accountAssociationView(row)),
        (filter: AccountAssociationsFilter) => ({ request: { id: groupOf(filter), name: filter.name } }),
      ),
    ),

    delete: ({ group }, call) => v2.deleteAccountAssociation({ uid: group }, call),

    // Providers and results have the same numbers in both versions.
    async check({ group, accountType }, call) {
      const request = { uid: group, providerType: accountType as number };
      const { status, reason, message } = await v2.checkAccountAssociation(request, call);
      return { ready: status as number, reason, message };
    },
  });
}

function sent(association: AccountAssociations) {
  const { group, name, description } = association;
  return { uid: group, name, description, ...accountsOf(association) };
}
