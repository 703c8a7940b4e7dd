// Rows for tests, with every column filled in.

import { TagSelector_Kind } from "#gen/chainguard/platform/registry/v2beta1/overlay_bindings_pb.js";
import { parentOf } from "../../src/kernel/uidp.js";
import type { GroupRow } from "../../src/store/iam/groups.js";
import type { IdentityRow } from "../../src/store/iam/identities.js";
import type { RoleBindingRow } from "../../src/store/iam/role-bindings.js";
import type { RoleRow } from "../../src/store/iam/roles.js";
import { buildDisplayNameKey, buildMappedId, type ScimGroupRow } from "../../src/store/iam/scim-groups.js";
import { buildUserNameKey, type ScimUserRow } from "../../src/store/iam/scim-users.js";
import type { OverlayBindingRow } from "../../src/store/registry/overlay-bindings.js";
import type { OverlayRow } from "../../src/store/registry/overlays.js";

/** The uid of the nth root group of a test. */
export function rootUid(n: number): string {
  return n.toString(16).padStart(40, "0");
}

/** The uid of the nth child of `parent`. */
export function childUid(parent: string, n: number): string {
  return `${parent}/${n.toString(16).padStart(16, "0")}`;
}

export function groupRow(uid: string, values: Partial<GroupRow> = {}): GroupRow {
  return {
    uid,
    parentUid: parentOf(uid) ?? null,
    name: "group",
    description: "",
    verified: false,
    kind: 0,
    resourceLimits: {},
    issuerGuard: {},
    createdBy: "",
    createTimeMs: 1_000,
    updateTimeMs: 1_000,
    ...values,
  };
}

export function identityRow(uid: string, values: Partial<IdentityRow> = {}): IdentityRow {
  return {
    uid,
    groupUid: parentOf(uid) ?? null,
    name: "identity",
    description: "",
    issuer: "",
    subject: "",
    email: "",
    emailUnverified: "",
    company: "",
    providerUid: null,
    relation: 0,
    relationship: {},
    conditions: [],
    metadata: {},
    notBefore: 0,
    revokeTimeMs: 0,
    createTimeMs: 1_000,
    updateTimeMs: 1_000,
    lastSeenTimeMs: 1_000,
    deleteTimeMs: null,
    deactivateTimeMs: null,
    ...values,
  };
}

export function roleRow(uid: string, values: Partial<RoleRow> = {}): RoleRow {
  return {
    uid,
    groupUid: null,
    name: "role",
    description: "",
    capabilities: "0".repeat(64),
    createTimeMs: 1_000,
    updateTimeMs: 1_000,
    ...values,
  };
}

export function bindingRow(uid: string, identityUid: string, roleUid: string, values: Partial<RoleBindingRow> = {}) {
  return {
    uid,
    groupUid: parentOf(uid) ?? "",
    identityUid,
    roleUid,
    automatic: false,
    accepted: false,
    pending: false,
    managedByUid: null,
    endTimeMs: null,
    createTimeMs: 1_000,
    updateTimeMs: 1_000,
    ...values,
  };
}

/** An overlay that adds a package. */
export function overlayRow(uid: string, values: Partial<OverlayRow> = {}): OverlayRow {
  return {
    uid,
    groupUid: parentOf(uid) ?? "",
    name: "overlay",
    config: { contents: { packages: ["curl"] } },
    createTimeMs: 1_000,
    updateTimeMs: 1_000,
    ...values,
  };
}

/** A binding of an overlay to the tag `latest`. */
export function overlayBindingRow(
  uid: string,
  overlayUid: string,
  values: Partial<OverlayBindingRow> = {},
): OverlayBindingRow {
  return {
    ...{ uid, repoUid: parentOf(uid) ?? "", overlayUid },
    ...{ selectorKind: TagSelector_Kind.EXACT, tags: ["latest"], variantType: 0 },
    ...{ createTimeMs: 1_000, updateTimeMs: 1_000 },
    ...values,
  };
}

/** A person whom the directory of the provider above has sent. */
export function scimUserRow(uid: string, values: Partial<ScimUserRow> = {}): ScimUserRow {
  const userName = values.userName ?? uid;
  return {
    ...{ uid, providerUid: parentOf(uid) ?? "", userName, userNameKey: buildUserNameKey(userName), externalId: "" },
    ...{ displayName: "", active: true, attributes: {}, identityUid: null, revision: 1, rejectTimeMs: null },
    ...{ createTimeMs: 1_000, updateTimeMs: 1_000, ...values },
  };
}

/** A group that the directory of the provider above has sent. */
export function scimGroupRow(uid: string, values: Partial<ScimGroupRow> = {}): ScimGroupRow {
  const { displayName = uid, externalId = "" } = values;
  return {
    ...{ uid, providerUid: parentOf(uid) ?? "", displayName, displayNameKey: buildDisplayNameKey(displayName) },
    ...{ externalId, mappedId: buildMappedId({ uid, externalId }), attributes: {}, memberSet: 1, revision: 1 },
    ...{ createTimeMs: 1_000, updateTimeMs: 1_000, ...values },
  };
}
