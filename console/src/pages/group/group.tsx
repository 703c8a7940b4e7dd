// A group: who is in it, what is in it, and its settings. The part that is shown is in the URL.
import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { type ComponentType, lazy, Suspense } from "react";
import { Link, useSearchParams } from "wouter";
import { type Group, GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { readProblem } from "../../api/errors.js";
import { type Rights, useRights } from "../../api/rights.js";
import { parentOf } from "../../api/uids.js";
import { CopyButton } from "../../ui/button.js";
import { Crumbs } from "../../ui/crumbs.js";
import { Failed, Loading, Page } from "../../ui/page.js";

export interface GroupPartProps {
  readonly group: Group;
  readonly rights: Rights;
}

interface Part {
  readonly title: string;
  /** What a viewer needs to see it. */
  readonly capability: string;
  readonly view: ComponentType<GroupPartProps>;
}

const parts: Readonly<Record<string, Part>> = {
  members: {
    title: "Members",
    capability: "role_bindings.list",
    view: lazy(async () => ({ default: (await import("./members.js")).Members })),
  },
  groups: {
    title: "Groups",
    capability: "groups.list",
    view: lazy(async () => ({ default: (await import("./subgroups.js")).Subgroups })),
  },
  identities: {
    title: "Workloads",
    capability: "identity.list",
    view: lazy(async () => ({ default: (await import("./identities.js")).Identities })),
  },
  invites: {
    title: "Invites",
    capability: "group_invites.list",
    view: lazy(async () => ({ default: (await import("./invites.js")).Invites })),
  },
  settings: {
    title: "Settings",
    capability: "groups.list",
    view: lazy(async () => ({ default: (await import("./settings.js")).Settings })),
  },
};

export function GroupPage({ uid }: { readonly uid: string }) {
  const rights = useRights();
  const [search] = useSearchParams();
  const { data: group, error, refetch } = useQuery(GroupsService.method.getGroup, { uid });
  if (group === undefined) {
    if (error === null) return <Loading what="the group" />;
    return <NotShown error={error} onRetry={() => void refetch()} />;
  }
  const visible = Object.entries(parts).filter(([, { capability }]) => rights.may(capability, uid));
  const asked = search.get("view") ?? visible[0]?.[0] ?? "settings";
  const shown = parts[asked];
  const lead = (
    <>
      {group.description !== "" && <p className="foreign">{group.description}</p>}
      <p className="soft">
        <code>{uid}</code> <CopyButton text={uid} what="the uid" />
      </p>
    </>
  );
  const badges = group.verified ? <span className="badge good">verified</span> : undefined;
  return (
    <Page title={group.name} crumbs={<Crumbs group={parentOf(uid)} />} lead={lead} badges={badges}>
      <nav className="tabs" aria-label="Parts of the group">
        {visible.map(([name, { title }]) => (
          <Link key={name} href={`/groups/${uid}?view=${name}`} aria-current={name === asked ? "page" : undefined}>
            {title}
          </Link>
        ))}
      </nav>
      <Suspense fallback={<Loading />}>
        {shown !== undefined && rights.may(shown.capability, uid) ? (
          <shown.view group={group} rights={rights} />
        ) : (
          <p>You may not see this part of the group.</p>
        )}
      </Suspense>
    </Page>
  );
}

function NotShown({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  const { code } = readProblem(error);
  if (code !== Code.NotFound && code !== Code.PermissionDenied) return <Failed error={error} onRetry={onRetry} />;
  return (
    <Page title="This group is not shown">
      <p>It does not exist, or you may not see it. An owner of its organisation can grant you a role in it.</p>
      <p>
        <Link href="/">All organisations that you may see</Link>
      </p>
    </Page>
  );
}
