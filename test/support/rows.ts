// Rows for tests, with every column filled in.

import { parentOf } from "../../src/kernel/uidp.js";
import type { GroupRow } from "../../src/store/iam/groups.js";
import type { IdentityRow } from "../../src/store/iam/identities.js";
import type { RoleBindingRow } from "../../src/store/iam/role-bindings.js";
import type { RoleRow } from "../../src/store/iam/roles.js";

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
    metadata: {},
    notBefore: 0,
    revokeTimeMs: 0,
    createTimeMs: 1_000,
    updateTimeMs: 1_000,
    lastSeenTimeMs: 1_000,
    deleteTimeMs: null,
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
