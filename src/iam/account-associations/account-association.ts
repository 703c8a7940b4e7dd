// The account association resource: the cloud accounts that belong to a group. Authorization never reads it.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AccountAssociationsService as StableAccountAssociationsService } from "#gen/chainguard/platform/iam/v2/account_associations_pb.js";
import {
  type AccountAssociation,
  AccountAssociationSchema,
} from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { type FieldRule, isDescription, isName, isPrintable } from "../../pipeline/resource/rules.js";
import type { AccountAssociationRow } from "../../store/port.js";

const MAX_TEXT = 256;
const MAX_ENTRIES = 256;

const isText = (value: string) => value !== "" && value.length <= MAX_TEXT && isPrintable(value);

const isAmazon: FieldRule = (value, field) =>
  value === undefined || /^[0-9]{12}$/.test((value as NonNullable<AccountAssociation["amazon"]>).account)
    ? undefined
    : `${field}.account must be 12 digits`;

const isGoogle: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { projectId, projectNumber } = value as NonNullable<AccountAssociation["google"]>;
  if (!isText(projectId)) return `${field}.projectId is required`;
  return isText(projectNumber) ? undefined : `${field}.projectNumber is required`;
};

const isAzure: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { tenantId, clientIds } = value as NonNullable<AccountAssociation["azure"]>;
  if (!isText(tenantId)) return `${field}.tenantId is required`;
  return findTextMapFault(clientIds, `${field}.clientIds`);
};

const isGitHub: FieldRule = (value, field) => {
  if (value === undefined) return undefined;
  const { appInstallations } = value as NonNullable<AccountAssociation["github"]>;
  if (Object.keys(appInstallations).length > MAX_ENTRIES)
    return `${field}.appInstallations must be at most ${MAX_ENTRIES}`;
  // The JSON reader of the library lets other forms of a number through, as they are: `0x1`, ` 1`.
  if (!Object.keys(appInstallations).every((app) => /^(?:0|-?[1-9][0-9]*)$/.test(app)))
    return `${field}.appInstallations must have numbers of apps as keys`;
  const all = Object.values(appInstallations).flatMap(({ installations }) => installations);
  if (!all.every(({ installationId }) => installationId > 0n))
    return `${field}.appInstallations must have positive installation ids`;
  return all.every(({ name }) => name === "" || isText(name))
    ? undefined
    : `${field}.appInstallations must have names of at most ${MAX_TEXT} characters`;
};

const isChainguard: FieldRule = (value, field) =>
  value === undefined
    ? undefined
    : findTextMapFault(
        (value as NonNullable<AccountAssociation["chainguard"]>).serviceBindings,
        `${field}.serviceBindings`,
      );

function findTextMapFault(map: Readonly<Record<string, string>>, field: string): string | undefined {
  const entries = Object.entries(map);
  if (entries.length > MAX_ENTRIES) return `${field} must be at most ${MAX_ENTRIES}`;
  return entries.every(([key, value]) => isText(key) && isText(value))
    ? undefined
    : `${field} must map names to values`;
}

/** The account association resource. */
export const accountAssociations = defineResource({
  displayName: "account association",
  type: "iam.chainguard.dev/AccountAssociation",
  plural: "account associations",
  message: AccountAssociationSchema,
  table: (tx) => tx.accountAssociations,
  // An association has the uid of its group.
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { restrict: async (tx, groupUid) => (await tx.accountAssociations.find(groupUid)) !== undefined },
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

/** The accounts of an association. */
export type Accounts = Partial<Pick<AccountAssociation, "amazon" | "google" | "azure" | "github" | "chainguard">>;

/** Converts accounts to what is stored: the JSON of their messages. */
export function accountsToJson({ amazon, google, azure, github, chainguard }: Accounts): object {
  const set = Object.entries({ amazon, google, azure, github, chainguard }).filter(([, value]) => value !== undefined);
  return toJson(AccountAssociationSchema, create(AccountAssociationSchema, Object.fromEntries(set))) as JsonObject;
}

/** Converts a stored association to version 2. */
export function accountAssociationToProto(row: AccountAssociationRow): AccountAssociation {
  const accounts = fromJson(AccountAssociationSchema, row.accounts as JsonObject, { ignoreUnknownFields: true });
  accounts.uid = row.uid;
  accounts.name = row.name;
  accounts.description = row.description;
  accounts.createTime = timestampFromMs(row.createTimeMs);
  accounts.updateTime = timestampFromMs(row.updateTimeMs);
  return accounts;
}
