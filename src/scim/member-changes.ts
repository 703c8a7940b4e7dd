// Which members of a group a request changes. The members are rows of their own, so a change of one does not read the others.
import { equalitiesOf } from "./protocol/conditions.js";
import { badRequest } from "./protocol/error.js";
import type { Filter } from "./protocol/filter-tree.js";
import { readValues } from "./protocol/input.js";
import type { PatchOperation } from "./protocol/patch.js";
import type { Resource } from "./protocol/resource.js";
import { type Attribute, findAttribute, groupType } from "./protocol/schemas.js";

/** The attribute of groups that has the members. */
export const MEMBERS = "members";
const membersAttribute = findAttribute(groupType.attributes, MEMBERS) as Attribute;

/** How the members of a group change. */
export interface MemberChange {
  /** Whether the members are those that `members` has, and no others. */
  readonly isWhole: boolean;
  /** By the id of a person, whether the person is a member afterwards. */
  readonly members: ReadonlyMap<string, boolean>;
}

/** The members of a group that is sent as a whole, in a resource that was read by its schema. */
export function readMembers(resource: Resource): MemberChange {
  const members = (resource[MEMBERS] ?? []) as readonly Resource[];
  return { isWhole: true, members: new Map(members.map((member) => [idOf(member), true])) };
}

/**
 * Reads what operations of a PATCH do to the members.
 *
 * @returns the change, undefined where there is none, and the operations on other attributes
 * @throws ScimError 400
 */
export function readMemberChange(operations: readonly PatchOperation[]): {
  readonly change: MemberChange | undefined;
  readonly others: readonly PatchOperation[];
} {
  const members = new Map<string, boolean>();
  const others: PatchOperation[] = [];
  let [isWhole, isChanged] = [false, false];
  for (const operation of operations) {
    const { op, path, value } = operation;
    if (path.chain[0].name !== MEMBERS) {
      others.push(operation);
      continue;
    }
    if (path.chain.length > 1 || (path.filter !== undefined && op !== "remove")) {
      throw badRequest("mutability", "members: what a member has cannot be changed; remove it and add another");
    }
    isChanged = true;
    const isRemovalOfAll = op === "remove" && path.filter === undefined && (value ?? null) === null;
    if (isRemovalOfAll || op === "replace") {
      isWhole = true;
      members.clear();
    }
    if (isRemovalOfAll) continue;
    const ids = path.filter === undefined ? idsOf(value) : [findId(path.filter)];
    for (const id of ids) {
      if (isWhole && op === "remove") members.delete(id);
      else members.set(id, op !== "remove");
    }
  }
  return { change: isChanged ? { isWhole, members } : undefined, others };
}

function idsOf(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  return (readValues(membersAttribute, value) as Resource[]).map(idOf);
}

function idOf({ value: id }: Resource): string {
  if (typeof id === "string") return id;
  throw badRequest("invalidValue", "members: a member needs the id of a person as its value");
}

function findId(filter: Filter): string {
  const { value, ...more } = equalitiesOf(filter) ?? {};
  if (typeof value === "string" && Object.keys(more).length === 0) return value;
  throw badRequest("invalidFilter", 'members: a path must name a member by members[value eq "id"]');
}

/**
 * Finds the ids that a filter compares with those of members.
 *
 * @returns undefined where it asks of members anything else, empty where it asks nothing of them
 */
export function findComparedMembers(filter: Filter): readonly string[] | undefined {
  if ("filters" in filter) {
    const found = filter.filters.map(findComparedMembers);
    return found.includes(undefined) ? undefined : found.flatMap((ids) => ids ?? []);
  }
  if (filter.op === "not") return findComparedMembers(filter.filter);
  const [first, second] = filter.attribute;
  if (first.name !== MEMBERS) return [];
  if (filter.op === "element") {
    const { value, ...more } = equalitiesOf(filter.filter) ?? {};
    return typeof value === "string" && Object.keys(more).length === 0 ? [value] : undefined;
  }
  const isId = second === undefined || second.name === "value";
  return filter.op === "eq" && isId && typeof filter.value === "string" ? [filter.value] : undefined;
}
