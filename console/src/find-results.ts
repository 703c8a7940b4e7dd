// How something that was found is called, and where it leads.
import { FoundKind, type FoundResource } from "#gen/arbor/access/v1/access_pb.js";
import { parentOf } from "./api/uids.js";

/** The words for a kind, such as "role binding". */
export function describeKind({ kind, uid }: FoundResource): string {
  if (kind === FoundKind.IDENTITY) return uid.includes("/") ? "workload" : "person";
  return FoundKind[kind].toLowerCase().replaceAll("_", " ");
}

/** Where it lies, and what tells it from others of its name. */
export function describeFound(found: FoundResource): string {
  const where = found.path.length > 0 ? ` in ${found.path.join(" / ")}` : "";
  const detail = found.detail === "" || found.detail === found.name ? "" : `, ${found.detail}`;
  return `${describeKind(found)}${where}${detail}`;
}

/** The view that shows it, or the group that it is in. */
export function hrefOfFound({ kind, uid, group, detail }: FoundResource): string {
  switch (kind) {
    case FoundKind.GROUP:
      return `/groups/${uid}`;
    case FoundKind.IDENTITY:
      return `/identities/${uid}`;
    case FoundKind.ROLE_BINDING:
      return `/groups/${group}?view=members`;
    case FoundKind.GROUP_INVITE:
      return `/groups/${group}?view=invites`;
    case FoundKind.AUDIT_EVENT:
      return `/groups/${group || parentOf(detail) || detail}`;
    default:
      return group === "" ? `/find?q=${encodeURIComponent(uid)}` : `/groups/${group}`;
  }
}
