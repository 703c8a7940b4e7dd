import { lazy, Suspense, useState } from "react";
import { Link } from "wouter";
import { type Group, GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { topsFilter, useRights } from "../api/rights.js";
import { Button } from "../ui/button.js";
import { Loading, Page } from "../ui/page.js";
import { type Column, PagedTable } from "../ui/paged-table.js";
import { Time } from "../ui/time.js";
import { Newcomer } from "./newcomer.js";

const CreateGroupDialog = lazy(async () => ({ default: (await import("./group/create-group.js")).CreateGroupDialog }));

export const groupColumns: readonly Column<Group>[] = [
  {
    title: "Name",
    cell: ({ uid, name, verified }) => (
      <>
        <Link href={`/groups/${uid}`} className="foreign">
          {name}
        </Link>{" "}
        {verified && <span className="badge good">verified</span>}
      </>
    ),
  },
  { title: "Description", cell: ({ description }) => <span className="foreign">{description}</span> },
  { title: "Created", cell: ({ createTime }) => <Time at={createTime} /> },
];

export function OrganisationsPage() {
  const [isCreating, setCreating] = useState(false);
  const rights = useRights();
  const create = (
    <Button look="main" onClick={() => setCreating(true)}>
      New organisation
    </Button>
  );
  return (
    <Page title="Organisations" actions={create}>
      {!rights.isKnown && <Loading />}
      {rights.isKnown &&
        (rights.tops?.length === 0 ? (
          <Newcomer />
        ) : (
          <PagedTable
            caption="Organisations and groups that you may see"
            method={GroupsService.method.listGroups}
            input={{ uidp: topsFilter(rights), orderBy: "name" }}
            rows={({ groups }) => groups}
            keyOf={({ uid }) => uid}
            columns={groupColumns}
            empty={<Newcomer />}
          />
        ))}
      <Suspense>{isCreating && <CreateGroupDialog parent="" onClose={() => setCreating(false)} />}</Suspense>
    </Page>
  );
}
