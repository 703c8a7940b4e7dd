// People of a directory, as SCIM stores them, and providers whose directories send them.
import { setIdentityActive } from "../../src/iam/identities/deactivation.js";
import { noScim } from "../../src/iam/identity-providers/identity-provider.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { groupMappingKind } from "../../src/store/iam/group-mappings.js";
import {
  buildDefaultRole,
  type IdentityProviderRow,
  identityProviderKind,
} from "../../src/store/iam/identity-providers.js";
import type { RoleBindingRow } from "../../src/store/iam/role-bindings.js";
import {
  buildDisplayNameKey,
  buildMappedId,
  type ScimGroupRow,
  scimGroupKind,
} from "../../src/store/iam/scim-groups.js";
import { type ScimUserRow, scimUserKind } from "../../src/store/iam/scim-users.js";
import type { Tx } from "../../src/store/transaction.js";
import { scimGroupRow, scimUserRow } from "./rows.js";

/** How a provider of a test is set up. */
export interface ProviderSetup {
  readonly issuer: string;
  /** The claim that equals the external id; the rule is not set unless given. */
  readonly rule?: "sub" | "oid" | undefined;
  /** Whether SCIM is on; it is unless set. */
  readonly enabled?: boolean;
  /** The name of the default role; none unless set. */
  readonly defaultRole?: string | undefined;
  readonly clientId?: string;
  /** The claim that has the groups of a person; none unless set. */
  readonly groupsClaim?: string;
}

// As stored JSON has them.
const rules = {
  sub: "CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID",
  oid: "CORRELATION_RULE_OID_EQUALS_EXTERNAL_ID",
};

/** Stores a provider of an organisation; returns its uid. */
export async function insertProvider(tx: Tx, group: string, setup: ProviderSetup): Promise<string> {
  const { issuer, rule, enabled = true, defaultRole, clientId = "client", groupsClaim } = setup;
  const uid = randomIds.newUid(group);
  const row: IdentityProviderRow = {
    ...{ uid, groupUid: group, name: "directory", description: "", sealedSecret: "" },
    oidc: {
      issuer,
      clientId,
      pkceEnabled: true,
      ...(rule && { correlationRule: rules[rule] }),
      ...(groupsClaim && { groupsClaim }),
    },
    defaultRole: builtinRoleUid(defaultRole ?? "viewer"),
    lacksDefaultRole: false,
    ...(defaultRole === undefined && buildDefaultRole()),
    scim: { ...noScim, enabled },
    ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
  };
  await tx.table(identityProviderKind).insert(row);
  return uid;
}

/** Stores a person of a provider's directory, and deactivates the identity that it is linked with where it is inactive. */
export async function insertScimUser(
  tx: Tx,
  provider: string,
  values: Partial<ScimUserRow> = {},
): Promise<ScimUserRow> {
  const row = scimUserRow(randomIds.newUid(provider), values);
  await tx.table(scimUserKind).insert(row);
  if (!row.active && row.identityUid !== null) await setIdentityActive(tx, row.identityUid, false, Date.now());
  return row;
}

/** Stores a group of a directory, with some of its people. */
export async function insertScimGroup(
  tx: Tx,
  provider: string,
  values: Partial<ScimGroupRow> = {},
  members: readonly string[] = [],
): Promise<ScimGroupRow> {
  const { uid = randomIds.newUid(provider), displayName = "group", externalId = "" } = values;
  const row: ScimGroupRow = {
    ...{ uid, providerUid: provider, displayName, displayNameKey: buildDisplayNameKey(displayName), externalId },
    ...{ mappedId: buildMappedId({ uid, externalId }), attributes: {}, memberSet: 1, revision: 1 },
    ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
    ...values,
  };
  await tx.table(scimGroupKind).insert(row);
  for (const userUid of members) await tx.scimMembers.add({ groupUid: uid, memberSet: row.memberSet, userUid });
  return row;
}

/** Makes a person active or inactive, as the directory does. */
export async function setScimUserActive(tx: Tx, uid: string, active: boolean): Promise<void> {
  const row = await tx.table(scimUserKind).find(uid);
  if (row === undefined) throw new Error(`there is no person ${uid}`);
  if (row.identityUid !== null) await setIdentityActive(tx, row.identityUid, active, Date.now());
  await tx.table(scimUserKind).replace({ ...row, active });
}

/** Deletes a person, as the directory does; what is left of it keeps the person out. */
export async function deleteScimUser(tx: Tx, uid: string): Promise<void> {
  const row = await tx.table(scimUserKind).find(uid);
  if (row === undefined) throw new Error(`there is no person ${uid}`);
  const { providerUid, externalId, identityUid, createTimeMs } = row;
  if (identityUid !== null) await setIdentityActive(tx, identityUid, false, Date.now());
  await tx.table(scimUserKind).delete(uid);
  await tx
    .table(scimUserKind)
    .putFormer({ providerUid, externalId, uid, identityUid, createTimeMs, deleteTimeMs: 2_000 });
}

/** Stores what grants an identity a role by its directory: a person, a group and a mapping. */
export async function justifyBinding(
  tx: Tx,
  provider: string,
  { identityUid, roleUid, groupUid }: RoleBindingRow,
): Promise<void> {
  const users = tx.table(scimUserKind);
  const userUid = (await users.findByIdentity(identityUid))?.uid ?? randomIds.newUid(provider);
  if ((await users.find(userUid)) === undefined) {
    await users.insert(scimUserRow(userUid, { identityUid, externalId: userUid }));
  }
  const group = scimGroupRow(randomIds.newUid(provider));
  await tx.table(scimGroupKind).insert(group);
  await tx.scimMembers.add({ groupUid: group.uid, memberSet: group.memberSet, userUid });
  await tx.table(groupMappingKind).insert({
    ...{ uid: randomIds.newUid(provider), providerUid: provider, externalGroupId: group.mappedId, roleUid },
    ...{ scope: groupUid, createdBy: null, createTimeMs: 1_000 },
  });
}
