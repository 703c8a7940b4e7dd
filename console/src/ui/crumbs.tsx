import { useQuery } from "@connectrpc/connect-query";
import { Link } from "wouter";
import { BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { lineageOf } from "../api/uids.js";

/** Where a group or something in it lies: the names of the groups above it. */
export function Crumbs({ group }: { readonly group: string }) {
  const ids = group === "" ? [] : lineageOf(group);
  const names = useGroupNames(ids);
  const own = useOwnOrganisations();
  return (
    <nav className="crumbs" aria-label="Where this is">
      <ol>
        <li>
          <Link href="/">Organisations</Link>
        </li>
        {ids.map((uid) => (
          <li key={uid} className="foreign">
            {names.has(uid) ? <Link href={`/groups/${uid}`}>{names.get(uid)}</Link> : (own.get(uid) ?? shorten(uid))}
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

// Lists do not show an organisation to people who have a role only in a group of it. Their own roles say its name.
function useOwnOrganisations(): ReadonlyMap<string, string> {
  const { data } = useQuery(BindingsService.method.listBindings, { pageSize: 200 });
  return new Map(data?.bindings.map(({ organization }) => [organization?.uid ?? "", organization?.name ?? ""]));
}

/** The names of a group and of those above it, as far as the viewer sees them, in one line. */
export function GroupPath({ group }: { readonly group: string }) {
  const ids = lineageOf(group);
  const names = useGroupNames(ids);
  const own = useOwnOrganisations();
  const path = ids.map((uid) => names.get(uid) ?? own.get(uid) ?? shorten(uid));
  return <span className="foreign">{path.join(" / ")}</span>;
}

/** A uid in the width of a name. */
export function shorten(uid: string): string {
  const last = uid.split("/").at(-1) ?? uid;
  return last.length > 12 ? `${last.slice(0, 8)}…` : last;
}
