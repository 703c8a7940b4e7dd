import { useQuery } from "@connectrpc/connect-query";
import { Link } from "wouter";
import { GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { lineageOf } from "../api/uids.js";

/** Where a group or something in it lies: the names of the groups above it. */
export function Crumbs({ group }: { readonly group: string }) {
  const ids = group === "" ? [] : lineageOf(group);
  const names = useGroupNames(ids);
  return (
    <nav className="crumbs" aria-label="Where this is">
      <ol>
        <li>
          <Link href="/">Organisations</Link>
        </li>
        {ids.map((uid) => (
          <li key={uid} className="foreign">
            <Link href={`/groups/${uid}`}>{names.get(uid) ?? shorten(uid)}</Link>
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** Reads the names of groups; those that the viewer may not see have none. */
export function useGroupNames(ids: readonly string[]): ReadonlyMap<string, string> {
  const { data } = useQuery(
    GroupsService.method.listGroups,
    { uidp: { ids: [...ids] }, pageSize: 200 },
    { enabled: ids.length > 0 },
  );
  return new Map(data?.groups.map(({ uid, name }) => [uid, name]));
}

/** A uid in the width of a name. */
export function shorten(uid: string): string {
  const last = uid.split("/").at(-1) ?? uid;
  return last.length > 12 ? `${last.slice(0, 8)}…` : last;
}
