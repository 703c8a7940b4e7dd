// The names that commands on the host take in place of uids, with the spellings of the client commands. The operator sees
// every organisation, so a name that two of them have is an error.
import { invalidArgument } from "../../kernel/errors.js";
import { isUidText } from "../../kernel/uidp.js";
import { groupKind } from "../../store/iam/groups.js";
import { identityKind } from "../../store/iam/identities.js";
import { roleKind } from "../../store/iam/roles.js";
import type { ListedTable } from "../../store/lists/listed-table.js";
import type { ListedRow } from "../../store/lists/resource.js";
import type { Tx } from "../../store/transaction.js";

/** How many resources of one name are read. */
const MAX_NAMESAKES = 100;

/** The kinds that have names. */
export type NamedKind = "group" | "identity" | "role";

type Find = (tx: Tx, text: string) => Promise<readonly string[]>;

const finders: Readonly<Record<NamedKind, Find>> = {
  group: findGroups,
  identity: (tx, text) => (text.includes("@") ? findPeople(tx, text) : findInGroup(tx, tx.table(identityKind), text)),
  role: (tx, text) =>
    text.includes("/") ? findInGroup(tx, tx.table(roleKind), text) : findRolesOutsideGroups(tx, text),
};

const hints: Readonly<Record<NamedKind, string>> = {
  group: "a path such as acme.example/platform; arbor admin organisations list lists the organisations",
  identity:
    "a path such as acme.example/platform/ci, or the confirmed e-mail address of a person; arbor admin identities list --org NAME lists them",
  role: "the name of a built-in or operator role, or a path such as acme.example/deployer; arbor admin roles list lists the operator roles",
};

/**
 * Finds the uid of a resource; a uid stays as it is, existing or not.
 *
 * @param field the flag or argument, for errors
 * @throws ApiError INVALID_ARGUMENT for a name that none or several have, whose uids it lists
 */
export async function resolveName(tx: Tx, kind: NamedKind, text: string, field: string): Promise<string> {
  if (text === "" || isUidText(text)) return text;
  const [found, ...others] = new Set(await finders[kind](tx, text));
  if (found !== undefined && others.length === 0) return found;
  const rule =
    found === undefined
      ? `no ${kind} has the name ${text}: it must be a uid, or ${hints[kind]}`
      : `${text} is the name of several: ${[found, ...others].join(", ")}`;
  throw invalidArgument({ field, subject: "", rule });
}

async function findGroups(tx: Tx, path: string): Promise<string[]> {
  const [root = "", ...rest] = path.split("/");
  let uids = (await tx.table(groupKind).findRootsNamed(root, MAX_NAMESAKES)).map(({ uid }) => uid);
  for (const name of rest) {
    const below: string[] = [];
    for (const uid of uids) below.push(...(await tx.table(groupKind).findChildrenNamed(uid, name, MAX_NAMESAKES)));
    uids = below;
  }
  return uids;
}

async function findInGroup<Row extends ListedRow>(
  tx: Tx,
  table: Pick<ListedTable<Row>, "findChildrenNamed">,
  path: string,
): Promise<string[]> {
  const slash = path.lastIndexOf("/");
  if (slash < 0) return [];
  const uids: string[] = [];
  for (const group of await findGroups(tx, path.slice(0, slash))) {
    uids.push(...(await table.findChildrenNamed(group, path.slice(slash + 1), MAX_NAMESAKES)));
  }
  return uids;
}

async function findRolesOutsideGroups(tx: Tx, name: string): Promise<string[]> {
  return (await tx.table(roleKind).listOutsideGroups()).filter((role) => role.name === name).map(({ uid }) => uid);
}

// Workloads have no address. An identity that is being deleted keeps its row.
async function findPeople(tx: Tx, email: string): Promise<string[]> {
  const uids: string[] = [];
  for (const uid of await tx.table(identityKind).findUidsWhere("email", email, MAX_NAMESAKES)) {
    if ((await tx.table(identityKind).find(uid)) !== undefined) uids.push(uid);
  }
  return uids;
}
