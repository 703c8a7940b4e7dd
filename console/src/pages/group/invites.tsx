import { useMutation } from "@connectrpc/connect-query";
import { lazy, Suspense, useState } from "react";
import { type GroupInvite, GroupInvitesService } from "#gen/chainguard/platform/iam/v2/group_invites_pb.js";
import { Button } from "../../ui/button.js";
import { ConfirmDialog } from "../../ui/confirm-dialog.js";
import { Empty } from "../../ui/page.js";
import { type Column, PagedTable } from "../../ui/paged-table.js";
import { Time } from "../../ui/time.js";
import { WhoMay } from "../../ui/who-may.js";
import type { GroupPartProps } from "./group.js";

const InviteDialog = lazy(async () => ({ default: (await import("./invite.js")).InviteDialog }));

export function Invites({ group, rights }: GroupPartProps) {
  const { uid } = group;
  const [isInviting, setInviting] = useState(false);
  const [ending, setEnding] = useState<GroupInvite>();
  const mayInvite = rights.may("group_invites.create", uid) && rights.may("role_bindings.create", uid);
  const columns: Column<GroupInvite>[] = [
    {
      title: "For",
      cell: ({ email }) => (email === "" ? "whoever has the link" : <span className="foreign">{email}</span>),
    },
    { title: "Role", cell: ({ role }) => <span className="foreign">{role?.name}</span> },
    { title: "Can be used", cell: ({ singleUse }) => (singleUse ? "once" : "several times") },
    { title: "Expires", cell: ({ expirationTime }) => <Time at={expirationTime} relative /> },
    { title: "Created", cell: ({ createTime }) => <Time at={createTime} /> },
    ...(rights.may("group_invites.delete", uid)
      ? [
          {
            title: "End",
            isUntitled: true,
            cell: (invite: GroupInvite) => (
              <Button isSmall look="quiet" onClick={() => setEnding(invite)}>
                End…<span className="visually-hidden"> the invite for {invite.email || "whoever has the link"}</span>
              </Button>
            ),
          },
        ]
      : []),
  ];
  return (
    <section className="stack" aria-label="Invites">
      {mayInvite ? (
        <div className="actions">
          <Button look="main" onClick={() => setInviting(true)}>
            Invite people
          </Button>
        </div>
      ) : (
        <WhoMay capability="group_invites.create" uid={uid} what="invite people here" />
      )}
      <PagedTable
        caption="Invites into this group"
        method={GroupInvitesService.method.listGroupInvites}
        input={{ uidp: { childrenOf: uid } }}
        rows={({ groupInvites }) => groupInvites}
        keyOf={(invite) => invite.uid}
        columns={columns}
        empty={
          <Empty title="No invite is open">
            <p>An invite is a link. Who opens it, signs in and agrees gets a role in this group.</p>
          </Empty>
        }
      />
      <Suspense>{isInviting && <InviteDialog group={uid} onClose={() => setInviting(false)} />}</Suspense>
      {ending !== undefined && <EndInviteDialog invite={ending} onClose={() => setEnding(undefined)} />}
    </section>
  );
}

function EndInviteDialog({ invite, onClose }: { readonly invite: GroupInvite; readonly onClose: () => void }) {
  const end = useMutation(GroupInvitesService.method.deleteGroupInvite);
  const { uid } = invite;
  return (
    <ConfirmDialog
      title="End this invite?"
      label="End the invite"
      run={() => end.mutateAsync({ uid })}
      done="The invite was ended."
      action={{
        method: "DELETE",
        path: `/iam/v2/groupInvites/${uid}`,
        arbor: ["iam", "group-invites", "delete", uid],
      }}
      onClose={onClose}
    >
      <p>Its link stops working. Who has joined by it keeps the role: revoke that among the members.</p>
    </ConfirmDialog>
  );
}
