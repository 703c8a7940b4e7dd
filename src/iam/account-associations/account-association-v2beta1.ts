// The handlers of AccountAssociationsService in version 2beta1.
import {
  type AccountAssociation,
  AccountAssociationsService,
  AccountProviderType,
  CheckStatus,
} from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { alreadyExists, invalidArgument } from "../../kernel/errors.js";
import { parentOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { withoutChange } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import type { AccountAssociationRow } from "../../store/port.js";
import { groups } from "../groups/group.js";
import { relationTypes } from "../identities/relationship.js";
import { requireRightsOf } from "../rights.js";
import { accountAssociations, accountAssociationToProto, accountsToJson } from "./account-association.js";

/** Creates AccountAssociationsService. */
export function accountAssociationsV2beta1({ listResources }: Pick<ResourceDeps, "listResources">) {
  return serve(AccountAssociationsService, {
    getAccountAssociation: ({ uid }, { tx }) => getResource(tx, accountAssociations, uid, accountAssociationToProto),

    async listAccountAssociations(request, call) {
      const { resources, ...page } = await listResources(call, accountAssociations, request, accountAssociationToProto);
      return { accountAssociations: resources, ...page };
    },

    async createAccountAssociation({ parent, accountAssociation }, call) {
      const { tx, startMs } = call;
      await getRow(tx, groups, parent);
      const { name, description, ...accounts } = buildValues(accountAssociations, accountAssociation);
      await requireServices(parent, accounts.chainguard, call);
      if (await tx.accountAssociations.find(parent)) throw alreadyExists(accountAssociations, parent);
      const row: AccountAssociationRow = {
        uid: parent,
        parentUid: parentOf(parent) ?? null,
        name,
        description,
        accounts: accountsToJson(accounts),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.accountAssociations.insert(row);
      return accountAssociationToProto(row);
    },

    async updateAccountAssociation({ accountAssociation, updateMask }, call) {
      const { tx, startMs } = call;
      const before = await getRow(tx, accountAssociations, accountAssociation?.uid ?? "");
      const view = accountAssociationToProto(before);
      const patch = buildPatch(accountAssociations, accountAssociation, updateMask, view);
      if (Object.keys(patch).length === 0) return withoutChange(view);
      if (patch.chainguard) await requireServices(before.uid, patch.chainguard, call, view.chainguard);
      const { name = before.name, description = before.description, ...accounts } = patch;
      const row = {
        ...before,
        name,
        description,
        accounts: accountsToJson({ ...view, ...accounts }),
        updateTimeMs: startMs,
      };
      await tx.accountAssociations.replace(row);
      return accountAssociationToProto(row);
    },

    // Deletion is idempotent, because clients repeat it.
    async deleteAccountAssociation({ uid }, { tx }) {
      await tx.accountAssociations.delete(uid);
      return {};
    },

    // READY would need credentials to ask the account itself, which the service does not have.
    async checkAccountAssociation({ uid, providerType }, { tx }) {
      const { amazon, google, azure } = await getResource(tx, accountAssociations, uid, accountAssociationToProto);
      const configured = {
        [AccountProviderType.AMAZON]: amazon,
        [AccountProviderType.GOOGLE]: google,
        [AccountProviderType.AZURE]: azure,
        [AccountProviderType.UNSPECIFIED]: undefined,
      }[providerType];
      const status = CheckStatus.NOT_READY;
      return configured === undefined
        ? { status, reason: "NOT_CONFIGURED", message: "the association names no account of this provider" }
        : { status, reason: "NOT_VERIFIED", message: "the account could not be asked whether it trusts this service" };
    },
  });
}

// A component of the service acts as the identity that is bound to it. That identity must be a service
// principal directly in the group and hold nothing that the caller lacks. Unchanged bindings stay.
async function requireServices(
  group: string,
  chainguard: AccountAssociation["chainguard"],
  call: UnaryCall,
  before?: AccountAssociation["chainguard"],
): Promise<void> {
  for (const [service, uid] of Object.entries(chainguard?.serviceBindings ?? {})) {
    if (before?.serviceBindings[service] === uid) continue;
    const identity = parentOf(uid) === group ? await call.tx.identities.find(uid) : undefined;
    if (identity?.relation !== relationTypes.servicePrincipal) {
      const field = `chainguard.serviceBindings.${service}`;
      throw invalidArgument({ field, description: `${service} must be a service principal directly in the group` });
    }
    await requireRightsOf(call, uid);
  }
}
