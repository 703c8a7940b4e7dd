// A uid is a path (UIDP, docs/api-rules.md#uids): a root segment of 40 hex digits, then segments of 16, joined by "/".
// Ancestors are compared by whole segments, never by prefixes of the text.

/** The form of a uid, as a part of a regular expression; the number of segments has a limit besides. */
export const UIDP_PATTERN = "[0-9a-f]{40}(?:/[0-9a-f]{16})*";

const UIDP = new RegExp(`^${UIDP_PATTERN}$`);

/** The largest number of segments of a uid: enough for any tree, and a bound for every query. */
export const MAX_DEPTH = 64;

/** The deepest nesting of groups; resources in the deepest group still have segments left. */
export const MAX_GROUP_DEPTH = MAX_DEPTH - 4;

/** Whether `value` is a well-formed uid of at most {@link MAX_DEPTH} segments. */
export function isUidp(value: string): boolean {
  return value.length <= 40 + 17 * (MAX_DEPTH - 1) && UIDP.test(value);
}

/** The uid of the direct parent; undefined for a root. */
export function parentOf(uid: string): string | undefined {
  const slash = uid.lastIndexOf("/");
  return slash < 0 ? undefined : uid.slice(0, slash);
}

/** The first segment of `uid`: the organisation it belongs to. */
export function rootOf(uid: string): string {
  const slash = uid.indexOf("/");
  return slash < 0 ? uid : uid.slice(0, slash);
}

/** How many segments `uid` has: 1 for a root. */
export function depthOf(uid: string): number {
  let depth = 1;
  for (let i = uid.indexOf("/"); i >= 0; i = uid.indexOf("/", i + 1)) depth++;
  return depth;
}

/** `uid` and its ancestors, root first. */
export function lineageOf(uid: string): string[] {
  const lineage: string[] = [];
  for (let i = uid.indexOf("/"); i >= 0; i = uid.indexOf("/", i + 1)) lineage.push(uid.slice(0, i));
  lineage.push(uid);
  return lineage;
}

/** Whether `uid` is a descendant of `ancestor`; false for equal uids. */
export function isBelow(uid: string, ancestor: string): boolean {
  return uid.length > ancestor.length && uid.charCodeAt(ancestor.length) === 47 && uid.startsWith(ancestor);
}

/** Whether `uid` is `ancestor` or a descendant of it. */
export function isWithin(uid: string, ancestor: string): boolean {
  return uid === ancestor || isBelow(uid, ancestor);
}

/** The uids without an ancestor in `uids`, sorted. */
export function maximalOf(uids: Iterable<string>): string[] {
  const maximal: string[] = [];
  let last: string | undefined;
  for (const uid of sortUids([...uids])) {
    if (last !== undefined && isWithin(uid, last)) continue;
    maximal.push(uid);
    last = uid;
  }
  return maximal;
}

function sortUids(uids: string[]): string[] {
  for (let i = 1; i < uids.length; i++) if ((uids[i - 1] as string) > (uids[i] as string)) return uids.sort();
  return uids;
}

/** Whether a text begins as uids do, so that it is a uid, well-formed or not, and no name. */
export function isUidText(text: string): boolean {
  return /^[0-9a-f]{40}(?:\/|$)/.test(text);
}
