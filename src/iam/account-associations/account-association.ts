// The account association resource, and its handlers in version 2beta1: the cloud accounts that belong to a group. It is
// a note for programs that work in these accounts: the service calls none of them, and authorization never reads it. A
// group has one at most, which has the uid of the group.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { AccountAssociationsService as StableAccountAssociationsService } from "#gen/chainguard/platform/iam/v2/account_associations_pb.js";
import {
  type AccountAssociation,
  AccountAssociationSchema,
  AccountAssociationsService,
  AccountProviderType,
  CheckStatus,
} from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { alreadyExists, type BrokenRule, breakRule, invalidArgument } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { parentOf } from "../../kernel/uidp.js";
import { defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { type FormerPath, serve } from "../../pipeline/method-table.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { findsResource, getResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { type FieldRule, isDescription, isName, isPrintable } from "../../pipeline/resource/rules.js";
import { type AccountAssociationRow, accountAssociationKind } from "../../store/iam/account-associations.js";
import { identityKind } from "../../store/iam/identities.js";
import { groups } from "../groups/group.js";
import { relationTypes } from "../identities/relationship.js";
import { requireRightsOf } from "../rights.js";

const MAX_TEXT = 256;
const MAX_ENTRIES = 256;

const isText = (value: string) => value !== "" && value.length <= MAX_TEXT && isPrintable(value);

const isAmazon: FieldRule = (value, field) =>
  value === undefined || /^[0-9]{12}$/.test((value as NonNullable<AccountAssociation["amazon"]>).account)
    ? undefined
    : breakRule(`${field}.account`, "must be 12 digits");

const isGoogle: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { projectId, projectNumber } = value as NonNullable<AccountAssociation["google"]>;
  if (!isText(projectId)) return breakRule(`${field}.projectId`, "is required");
  return isText(projectNumber) ? undefined : breakRule(`${field}.projectNumber`, "is required");
};

const isAzure: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { tenantId, clientIds } = value as NonNullable<AccountAssociation["azure"]>;
  if (!isText(tenantId)) return breakRule(`${field}.tenantId`, "is required");
  return findTextMapFault(clientIds, `${field}.clientIds`);
};

const isGitHub: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { appInstallations } = value as NonNullable<AccountAssociation["github"]>;
  if (Object.keys(appInstallations).length > MAX_ENTRIES)
    return breakRule(`${field}.appInstallations`, `must be at most ${MAX_ENTRIES}`);
  // The JSON reader of the library lets other forms of a number through, as they are: `0x1`, ` 1`.
  if (!Object.keys(appInstallations).every((app) => /^(?:0|-?[1-9][0-9]*)$/.test(app)))
    return breakRule(`${field}.appInstallations`, "must have numbers of apps as keys");
  const all = Object.values(appInstallations).flatMap(({ installations }) => installations);
  if (!all.every(({ installationId }) => installationId > 0n))
    return breakRule(`${field}.appInstallations`, "must have positive installation ids");
  return all.every(({ name }) => name === "" || isText(name))
    ? undefined
    : breakRule(`${field}.appInstallations`, `must have names of at most ${MAX_TEXT} characters`);
};

const isChainguard: FieldRule = (value, field) =>
  value === undefined
    ? undefined
    : findTextMapFault(
        (value as NonNullable<AccountAssociation["chainguard"]>).serviceBindings,
        `${field}.serviceBindings`,
      );

function findTextMapFault(map: Readonly<Record<string, string>>, field: string): BrokenRule | undefined {
  const entries = Object.entries(map);
  if (entries.length > MAX_ENTRIES) return breakRule(field, `must be at most ${MAX_ENTRIES}`);
  return entries.every(([key, value]) => isText(key) && isText(value))
    ? undefined
    : breakRule(field, "must map names to values");
}

export const accountAssociations = defineResource({
  displayName: "account association",
  type: "iam.chainguard.dev/AccountAssociation",
  plural: "account associations",
  message: AccountAssociationSchema,
  kind: accountAssociationKind,
  // An association has the uid of its group.
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: {
      restrict: async (tx, groupUid) => Number((await tx.table(accountAssociationKind).find(groupUid)) !== undefined),
    },
  },
  stable: StableAccountAssociationsService,
  sort: ["group", "uid", "name", "created_at", "updated_at"],
  mutable: {
    name: isName,
    description: isDescription,
    amazon: isAmazon,
    google: isGoogle,
    azure: isAzure,
    github: isGitHub,
    chainguard: isChainguard,
  },
});

type Accounts = Partial<Pick<AccountAssociation, "amazon" | "google" | "azure" | "github" | "chainguard">>;

/** Converts accounts to what is stored: the JSON of their messages. */
function accountsToJson({ amazon, google, azure, github, chainguard }: Accounts): object {
  const set = Object.entries({ amazon, google, azure, github, chainguard }).filter(([, value]) => value !== undefined);
  return toJson(AccountAssociationSchema, create(AccountAssociationSchema, Object.fromEntries(set))) as JsonObject;
}

/** Converts a stored association to version 2. */
export function accountAssociationToProto(row: AccountAssociationRow): AccountAssociation {
  const accounts = fromJson(AccountAssociationSchema, row.accounts as JsonObject, { ignoreUnknownFields: true });
  accounts.uid = row.uid;
  accounts.name = row.name;
  accounts.description = row.description;
  accounts.createTime = timestampOf(row.createTimeMs);
  accounts.updateTime = timestampOf(row.updateTimeMs);
  return accounts;
}

// Those of version 1 with the prefix of version 2 (docs/v1.md).
const formerPaths: readonly FormerPath[] = [
  { current: "/accountAssociations", former: "/account_associations" },
  {
    current: "/accountAssociations/{uid=**}:checkAccountAssociation",
    former: "/account_associations/{uid=**}:check",
  },
];

export function accountAssociationsV2beta1({ listResources }: Pick<ResourceDeps, "listResources">) {
  const handlers: Handlers<typeof AccountAssociationsService> = {
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
      if (await tx.table(accountAssociationKind).find(parent)) throw alreadyExists(accountAssociations, parent);
      const row: AccountAssociationRow = {
        uid: parent,
        parentUid: parentOf(parent) ?? null,
        name,
        description,
        accounts: accountsToJson(accounts),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      await tx.table(accountAssociationKind).insert(row);
      return accountAssociationToProto(row);
    },

    async updateAccountAssociation({ accountAssociation, updateMask }, call) {
      const { tx, startMs } = call;
      const before = await getRow(tx, accountAssociations, accountAssociation?.uid ?? "");
      const view = accountAssociationToProto(before);
      const patch = buildPatch(accountAssociations, accountAssociation, updateMask, view);
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
      await tx.table(accountAssociationKind).replace(row);
      return accountAssociationToProto(row);
    },

    // Deletion is idempotent, because clients repeat it.
    async deleteAccountAssociation({ uid }, { tx }) {
      await tx.table(accountAssociationKind).delete(uid);
      return {};
    },

    // Never READY: the service has no credentials for the account, and so cannot find out whether the account trusts it.
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
  };
  const bodies = defineBodies(
    { message: AccountAssociationSchema, readers: [AccountAssociationsService.method.listAccountAssociations] },
    findsResource(accountAssociations, accountAssociationToProto),
  );
  const service = serve(AccountAssociationsService, handlers, {
    createAccountAssociation: { body: bodies.created },
    updateAccountAssociation: { body: bodies.updated },
    // The published event of a deletion has no body.
    deleteAccountAssociation: { body: "none" },
  });
  return { ...service, formerPaths };
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
    const identity = parentOf(uid) === group ? await call.tx.table(identityKind).find(uid) : undefined;
    if (identity?.relation !== relationTypes.servicePrincipal) {
      const field = `chainguard.serviceBindings.${service}`;
      throw invalidArgument({ field, subject: service, rule: `must be a service principal directly in the group` });
    }
    await requireRightsOf(call, uid);
  }
}
