// The handlers of AccountAssociationsService in version 2beta1.
import {
  type AccountAssociation,
  AccountAssociationsService,
  AccountProviderType,
  CheckStatus,
} from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { alreadyExists, invalidArgument, notFound } from "../../kernel/errors.js";
import { parentOf } from "../../kernel/uidp.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { AccountAssociationRow, Tx } from "../../store/port.js";
import { requireParentGroup } from "../groups/parent-group.js";
import type { IamDeps } from "../iam-deps.js";
import { relationTypes } from "../identities/relationship.js";
import { requireRightsOf } from "../rights.js";
import { accountAssociations, accountAssociationView, accountsToJson } from "./account-association.js";

/** AccountAssociationsService, ready to be served. */
export function accountAssociationsV2beta1({ tokens }: IamDeps) {
  return serve(AccountAssociationsService, {
    async getAccountAssociation({ uid }, { tx }) {
      return accountAssociationView(await found(uid, tx));
    },

    async listAccountAssociations(request, call) {
      const { tx, startMs } = call;
      const context = {
        method: "ListAccountAssociations",
        tokens,
        nowMs: startMs,
        visible: await call.visibleGroups(request.uidp),
      };
      const list = listQueryOf(accountAssociations, request, context);
      const page = await tx.accountAssociations.list(list.query);
      return { accountAssociations: page.rows.map(accountAssociationView), ...list.envelope(page) };
    },

    async createAccountAssociation({ parent, accountAssociation }, call) {
      const { tx, startMs } = call;
      await requireParentGroup(parent, call);
      const { name, description, ...accounts } = valuesOf(accountAssociations, accountAssociation);
      await requireServices(parent, accounts.chainguard, call);
      if (await tx.accountAssociations.get(parent)) throw alreadyExists(accountAssociations, parent);
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
      return accountAssociationView(row);
    },

    async updateAccountAssociation({ accountAssociation, updateMask }, call) {
      const { tx, startMs } = call;
      const before = await found(accountAssociation?.uid ?? "", tx);
      const view = accountAssociationView(before);
      const patch = patchOf(accountAssociations, accountAssociation, updateMask, view);
      if (Object.keys(patch).length === 0) return view;
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
      return accountAssociationView(row);
    },

    // What is not there needs no deleting: clients repeat deletions.
    async deleteAccountAssociation({ uid }, { tx }) {
      await tx.accountAssociations.delete(uid);
      return {};
    },

    // READY is said only after the account itself has been asked, which this installation has no
    // credentials for; anything else would be a guess.
    async checkAccountAssociation({ uid, providerType }, { tx }) {
      const { amazon, google, azure } = accountAssociationView(await found(uid, tx));
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

async function found(uid: string, tx: Tx): Promise<AccountAssociationRow> {
  const row = await tx.accountAssociations.get(uid);
  if (row === undefined) throw notFound(accountAssociations, uid);
  return row;
}

// A component of the service acts as the identity named for it: that one must lie directly in the
// group, be made for components, and hold nothing that the caller lacks. Those named before stay.
async function requireServices(
  group: string,
  chainguard: AccountAssociation["chainguard"],
  call: UnaryCall,
  before?: AccountAssociation["chainguard"],
): Promise<void> {
  for (const [service, uid] of Object.entries(chainguard?.serviceBindings ?? {})) {
    if (before?.serviceBindings[service] === uid) continue;
    const identity = parentOf(uid) === group ? await call.tx.identities.get(uid) : undefined;
    if (identity?.relation !== relationTypes.servicePrincipal) {
      const field = `chainguard.serviceBindings.${service}`;
      throw invalidArgument({ field, description: `${service} must be a service principal directly in the group` });
    }
    await requireRightsOf(call, uid);
  }
}
