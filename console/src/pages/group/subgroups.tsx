import { lazy, Suspense, useState } from "react";
import { GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { Button } from "../../ui/button.js";
import { Empty } from "../../ui/page.js";
import { PagedTable } from "../../ui/paged-table.js";
import { WhoMay } from "../../ui/who-may.js";
import { groupColumns } from "../organisations.js";
import type { GroupPartProps } from "./group.js";

const CreateGroupDialog = lazy(async () => ({ default: (await import("./create-group.js")).CreateGroupDialog }));

export function Subgroups({ group: { uid }, rights }: GroupPartProps) {
  const [isCreating, setCreating] = useState(false);
  const mayCreate = rights.may("groups.create", uid);
  return (
    <section className="stack" aria-label="Groups">
      {mayCreate ? (
        <div className="actions">
          <Button look="main" onClick={() => setCreating(true)}>
            New group
          </Button>
        </div>
      ) : (
        <WhoMay capability="groups.create" uid={uid} what="make groups here" />
      )}
      <PagedTable
        caption="Groups in this group"
        method={GroupsService.method.listGroups}
        input={{ uidp: { childrenOf: uid }, orderBy: "name" }}
        rows={({ groups }) => groups}
        keyOf={(group) => group.uid}
        columns={groupColumns}
        empty={
          <Empty title="There are no groups in this one">
            <p>Groups are teams, projects or whatever you need. Permissions in a group apply to all its subgroups.</p>
          </Empty>
        }
      />
      <Suspense>{isCreating && <CreateGroupDialog parent={uid} onClose={() => setCreating(false)} />}</Suspense>
    </section>
  );
}
