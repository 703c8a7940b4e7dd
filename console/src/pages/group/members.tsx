// Who holds a role in a group: those who are bound here, and those who are bound in a group above.
import { useQuery } from "@connectrpc/connect-query";
import { lazy, Suspense, useState } from "react";
import { Link } from "wouter";
import { type RoleBinding, RoleBindingsService } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { type Ends, useEnds } from "../../api/ends.js";
import { lineageOf } from "../../api/uids.js";
import { Button } from "../../ui/button.js";
import { MemberName, useMemberName } from "../../ui/member-name.js";
import { Empty, Failed } from "../../ui/page.js";
import { type Column, PagedTable } from "../../ui/paged-table.js";
import { Time } from "../../ui/time.js";
import { WhoMay } from "../../ui/who-may.js";
import type { GroupPartProps } from "./group.js";

const GrantDialog = lazy(async () => ({ default: (await import("./grant.js")).GrantDialog }));
const InviteDialog = lazy(async () => ({ default: (await import("./invite.js")).InviteDialog }));
const RevokeDialog = lazy(async () => ({ default: (await import("./revoke.js")).RevokeDialog }));
const BindingDialog = lazy(async () => ({ default: (await import("./binding.js")).BindingDialog }));

type Open =
  | { readonly kind: "grant" }
  | { readonly kind: "invite" }
  | { readonly kind: "revoke" }
  | { readonly kind: "binding"; readonly binding: RoleBinding };

export function Members({ group: { uid }, rights }: GroupPartProps) {
  const [open, setOpen] = useState<Open>();
  const [chosen, setChosen] = useState<ReadonlyMap<string, RoleBinding>>(new Map());
  const ends = useEnds(uid);
  const mayGrant = rights.may("role_bindings.create", uid);
  const mayRevoke = rights.may("role_bindings.delete", uid);

  function toggle(binding: RoleBinding): void {
    const next = new Map(chosen);
    if (!next.delete(binding.uid)) next.set(binding.uid, binding);
    setChosen(next);
  }

  function close(): void {
    setOpen(undefined);
  }

  const columns: Column<RoleBinding>[] = [
    ...(mayRevoke ? [choiceColumn(chosen, toggle)] : []),
    ...bindingColumns(ends),
    {
      title: "Details",
      isUntitled: true,
      cell: (binding) => (
        <Button look="quiet" isSmall onClick={() => setOpen({ kind: "binding", binding })}>
          Details
          <span className="visually-hidden">
            {" "}
            of <MemberName binding={binding} />
          </span>
        </Button>
      ),
    },
  ];
  return (
    <section className="stack" aria-label="Members">
      {mayGrant ? (
        <div className="actions">
          <Button look="main" onClick={() => setOpen({ kind: "grant" })}>
            Grant a role
          </Button>
          {rights.may("group_invites.create", uid) && (
            <Button onClick={() => setOpen({ kind: "invite" })}>Invite people</Button>
          )}
        </div>
      ) : (
        <WhoMay capability="role_bindings.create" uid={uid} what="grant roles here" />
      )}
      <h2>In this group</h2>
      <PagedTable
        caption="Members of this group"
        method={RoleBindingsService.method.listRoleBindings}
        input={{ group: uid }}
        rows={({ roleBindings }) => roleBindings}
        keyOf={(binding) => binding.uid}
        columns={columns}
        empty={
          <Empty title="Nobody has a role in this group alone">
            <p>People and workloads that have a role in a group above have it here as well.</p>
          </Empty>
        }
      />
      {chosen.size > 0 && (
        <div className="chosen-bar" role="status">
          <span>
            {chosen.size} {chosen.size === 1 ? "role" : "roles"} chosen
          </span>
          <div className="actions">
            <Button isSmall onClick={() => setChosen(new Map())}>
              Choose none
            </Button>
            <Button isSmall look="danger" onClick={() => setOpen({ kind: "revoke" })}>
              Revoke…
            </Button>
          </div>
        </div>
      )}
      {lineageOf(uid)
        .slice(0, -1)
        .reverse()
        .map((above) => (
          <Inherited key={above} group={above} onOpen={(binding) => setOpen({ kind: "binding", binding })} />
        ))}
      <Suspense>
        {open?.kind === "invite" && <InviteDialog group={uid} onClose={close} />}
        {open?.kind === "grant" && <GrantDialog group={uid} onClose={close} />}
        {open?.kind === "binding" && <BindingDialog binding={open.binding} rights={rights} onClose={close} />}
        {open?.kind === "revoke" && (
          <RevokeDialog
            bindings={[...chosen.values()]}
            onClose={close}
            onRevoked={(uids) => setChosen(new Map([...chosen].filter(([one]) => !uids.includes(one))))}
          />
        )}
      </Suspense>
    </section>
  );
}

function choiceColumn(chosen: ReadonlyMap<string, RoleBinding>, toggle: (binding: RoleBinding) => void) {
  return {
    title: "Choose",
    isUntitled: true,
    cell: (binding: RoleBinding) =>
      binding.managedByUidp === "" && (
        <Choice binding={binding} isChosen={chosen.has(binding.uid)} onChange={() => toggle(binding)} />
      ),
  };
}

interface ChoiceProps {
  readonly binding: RoleBinding;
  readonly isChosen: boolean;
  readonly onChange: () => void;
}

function Choice({ binding, isChosen, onChange }: ChoiceProps) {
  const name = useMemberName(binding);
  return (
    <input
      type="checkbox"
      className="row-choice"
      aria-label={`Choose ${name}`}
      checked={isChosen}
      onChange={onChange}
    />
  );
}

function bindingColumns({ endOf, isWhole }: Ends): Column<RoleBinding>[] {
  return [
    {
      title: "Who",
      cell: (binding) => {
        const { identity } = binding;
        if (identity === undefined) return "";
        return (
          <>
            <Link href={`/identities/${identity.uid}`} className="foreign">
              <MemberName binding={binding} />
            </Link>
            {identity.email !== "" && identity.name !== "" && identity.name !== identity.email && (
              <div className="soft foreign">{identity.name}</div>
            )}
          </>
        );
      },
    },
    { title: "Kind", cell: ({ identity }) => (identity?.uid.includes("/") ? "workload" : "person") },
    {
      title: "Role",
      cell: ({ role, managedByUidp }) => (
        <>
          <span className="foreign">{role?.name}</span>{" "}
          {managedByUidp !== "" && <span className="badge">by the directory</span>}
        </>
      ),
    },
    {
      title: "Ends",
      cell: ({ uid }) => <Time at={endOf(uid)} absent={isWhole ? "does not end" : "see the details"} relative />,
    },
    { title: "Since", cell: ({ createTime }) => <Time at={createTime} /> },
  ];
}

const SHOWN_ABOVE = 20;

interface InheritedProps {
  readonly group: string;
  readonly onOpen: (binding: RoleBinding) => void;
}

/** Who has a role in a group above, and so in this one. */
function Inherited({ group, onOpen }: InheritedProps) {
  const request = { group, pageSize: SHOWN_ABOVE };
  const { data, error } = useQuery(RoleBindingsService.method.listRoleBindings, request, { retry: false });
  if (error !== null) return <Failed error={error} />;
  const [first] = data?.roleBindings ?? [];
  if (data === undefined || first === undefined) return null;
  const more = Number(data.totalCount ?? 0) - data.roleBindings.length;
  return (
    <section className="inherited" aria-label={`From ${first.group?.name}`}>
      <h2>
        From{" "}
        <Link href={`/groups/${group}`} className="foreign">
          {first.group?.name}
        </Link>
      </h2>
      <ul className="plain">
        {data.roleBindings.map((binding) => (
          <li key={binding.uid} className="actions">
            <Link href={`/identities/${binding.identity?.uid}`}>
              <MemberName binding={binding} />
            </Link>
            <span className="soft foreign">{binding.role?.name}</span>
            <Button look="quiet" isSmall onClick={() => onOpen(binding)}>
              Details
              <span className="visually-hidden">
                {" "}
                of <MemberName binding={binding} />
              </span>
            </Button>
          </li>
        ))}
      </ul>
      {more > 0 && (
        <p>
          <Link href={`/groups/${group}?view=members`}>{more} more</Link>
        </p>
      )}
    </section>
  );
}
