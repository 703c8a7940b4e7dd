// Uids are paths: the uid of a resource is the uid of its group, a slash and one more segment.

/** The uid of the group that something lies in; empty for an organisation. */
export function parentOf(uid: string): string {
  return uid.slice(0, Math.max(0, uid.lastIndexOf("/")));
}

/** The uids of a group and of all groups above it, the organisation first. */
export function lineageOf(uid: string): string[] {
  const segments = uid.split("/");
  return segments.map((_, index) => segments.slice(0, index + 1).join("/"));
}

/** Whether something is a group or lies in it, at any depth. */
export function isWithin(uid: string, group: string): boolean {
  return uid === group || uid.startsWith(`${group}/`);
}
