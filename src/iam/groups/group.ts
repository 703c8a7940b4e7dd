// The group resource: its definition, how version 2 shows it, and the domain that an organisation is named by.
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { Groups } from "#gen/chainguard/platform/iam/group_pb.js";
import { GroupsService as StableGroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { type Group, GroupSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { timestampOf } from "../../kernel/time.js";
import { isUidp, lineageOf, rootOf } from "../../kernel/uidp.js";
import { addMappedGrants, bitOf } from "../../pipeline/auth/authorize.js";
import type { Caller } from "../../pipeline/auth/caller.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { countRows } from "../../pipeline/resource/delete.js";
import { setByOperator } from "../../pipeline/resource/fixed-fields.js";
import { creates, type RequestedAddition } from "../../pipeline/resource/quota.js";
import { isDescription, isName } from "../../pipeline/resource/rules.js";
import { type GroupRow, groupKind } from "../../store/iam/groups.js";
import type { Tx } from "../../store/transaction.js";

/** The capability to create a group below another. */
export const createGroups = [{ bit: bitOf(Capability.CAP_IAM_GROUPS_CREATE) }];

/** The fields of a group that only the operator sets, in both versions. */
export const operatorFields = {
  verified: setByOperator("arbor admin groups verify UID"),
  kind: setByOperator("arbor admin groups verify UID --kind KIND"),
};

export const groups = defineResource({
  displayName: "group",
  plural: "groups",
  type: "iam.chainguard.dev/Group",
  message: GroupSchema,
  kind: groupKind,
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { restrict: (tx, uid) => countRows(tx.table(groupKind), "parentUid", uid) },
  },
  createdBy: [creates(GroupsService.method.createGroup, findAddition), creates(Groups.method.create, findAddition)],
  stable: StableGroupsService,
  mutable: { name: isName, description: isDescription },
  fixed: operatorFields,
});

// The method is unscoped: the caller comes without grants, so the right to create at the parent is checked here.
async function findAddition(
  { parent }: { readonly parent: string },
  caller: Caller,
  tx: Tx,
): Promise<RequestedAddition | undefined> {
  if (parent === "" || parent === "/") return { kind: "roots", ownerUid: caller.uid };
  if (!isUidp(parent)) return undefined;
  const { principal } = caller;
  const there = caller.withGrants(
    await addMappedGrants(principal, tx.access.findGrantsAt(caller.uid, lineageOf(parent)), tx),
  );
  return there.holds(createGroups, parent) ? { ownerUid: rootOf(parent) } : undefined;
}

/** Converts a stored group to version 2. */
export function groupToProto(row: GroupRow): Group {
  return {
    $typeName: "chainguard.platform.iam.v2beta1.Group",
    uid: row.uid,
    name: row.name,
    description: row.description,
    // The published contract shows quotas in version 1 alone.
    resourceLimits: {},
    verified: row.verified,
    createTime: timestampOf(row.createTimeMs),
    updateTime: timestampOf(row.updateTimeMs),
    kind: row.kind,
    status: 0,
  };
}

/** Domains of public mail providers. An address there proves nothing about an organisation. */
const PUBLIC_DOMAINS: ReadonlySet<string> = new Set([
  "aol.com",
  "fastmail.com",
  "gmail.com",
  "gmx.com",
  "gmx.de",
  "gmx.net",
  "googlemail.com",
  "hey.com",
  "hotmail.com",
  "icloud.com",
  "live.com",
  "mac.com",
  "mail.com",
  "mail.ru",
  "me.com",
  "msn.com",
  "naver.com",
  "outlook.com",
  "pm.me",
  "proton.me",
  "protonmail.com",
  "qq.com",
  "tutanota.com",
  "web.de",
  "yahoo.com",
  "yandex.ru",
  "ymail.com",
  "zoho.com",
]);

/**
 * Finds the domain of an organisation in the e-mail address of a person. Undefined where there is no address,
 * or the address is one of a public mail provider.
 *
 * @param email an address that a login provider of the service has confirmed, or empty
 */
export function findOrganisationDomain(email: string): string | undefined {
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  return email.includes("@") && domain !== "" && !PUBLIC_DOMAINS.has(domain) ? domain : undefined;
}
