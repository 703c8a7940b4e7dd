// A person or a workload: who it is, and which roles it has, as far as the viewer may see.
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import { Link } from "wouter";
import { AccessService, FoundKind } from "#gen/arbor/access/v1/access_pb.js";
import { TokensService } from "#gen/arbor/tokens/v1/tokens_pb.js";
import { TrustService } from "#gen/arbor/trust/v1/trust_pb.js";
import { IdentitiesService, type Identity } from "#gen/chainguard/platform/iam/v2/identities_pb.js";
import { type RoleBinding, RoleBindingsService } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { type Rights, useRights } from "../../api/rights.js";
import { parentOf } from "../../api/uids.js";
import { Button, CopyButton } from "../../ui/button.js";
import { ConfirmDialog } from "../../ui/confirm-dialog.js";
import { Crumbs } from "../../ui/crumbs.js";
import { Empty, Failed, Loading, Page } from "../../ui/page.js";
import { type Column, PagedTable } from "../../ui/paged-table.js";
import { Time } from "../../ui/time.js";
import { BindingDialog } from "../group/binding.js";
import { describeCondition, describeMatch } from "./match.js";

export function IdentityPage({ uid }: { readonly uid: string }) {
  const rights = useRights();
  return uid.includes("/") ? <WorkloadPage uid={uid} rights={rights} /> : <PersonPage uid={uid} rights={rights} />;
}

interface IdentityPartProps {
  readonly uid: string;
  readonly rights: Rights;
}

function PersonPage({ uid, rights }: IdentityPartProps) {
  const { data } = useQuery(RoleBindingsService.method.listRoleBindings, { identity: uid, pageSize: 1 });
  const [first] = data?.roleBindings ?? [];
  const [found] = useQuery(AccessService.method.find, { query: uid, kind: FoundKind.IDENTITY }).data?.resources ?? [];
  const title = found?.detail || found?.name || "A person";
  return (
    <Page title={title} badges={<span className="badge">person</span>} lead={<Uid uid={uid} />}>
      {first?.identity?.issuer !== undefined && first.identity.issuer !== "" && (
        <dl className="facts">
          <dt>Signs in with</dt>
          <dd className="foreign">{first.identity.issuer}</dd>
        </dl>
      )}
      <Bindings uid={uid} rights={rights} />
    </Page>
  );
}

function WorkloadPage({ uid, rights }: IdentityPartProps) {
  const [isRevoking, setRevoking] = useState(false);
  const { data: identity, error, refetch } = useQuery(IdentitiesService.method.getIdentity, { uid });
  if (identity === undefined) {
    return error ? <Failed error={error} onRetry={() => void refetch()} /> : <Loading what="the workload" />;
  }
  const group = parentOf(uid);
  const { name, description, lastSeenTime, createTime } = identity;
  const lead = (
    <>
      {description !== "" && <p className="foreign">{description}</p>}
      <Uid uid={uid} />
    </>
  );
  const actions = rights.may("identity.update", group) ? (
    <Button onClick={() => setRevoking(true)}>Revoke its tokens…</Button>
  ) : undefined;
  return (
    <Page
      title={name}
      crumbs={<Crumbs group={group} />}
      badges={<span className="badge">workload</span>}
      lead={lead}
      {...(actions !== undefined && { actions })}
    >
      <dl className="facts">
        <dt>Signs in with</dt>
        <dd className="foreign">{describeMatch(identity)}</dd>
        <Conditions uid={uid} />
        <dt>Last used</dt>
        <dd>
          <Time at={lastSeenTime} />
        </dd>
        <dt>Created</dt>
        <dd>
          <Time at={createTime} />
        </dd>
      </dl>
      <Bindings uid={uid} rights={rights} />
      {isRevoking && <RevokeTokensDialog identity={identity} onClose={() => setRevoking(false)} />}
    </Page>
  );
}

function Uid({ uid }: { readonly uid: string }) {
  return (
    <p className="soft">
      <code>{uid}</code> <CopyButton text={uid} what="the uid" />
    </p>
  );
}

function Conditions({ uid }: { readonly uid: string }) {
  const { data } = useQuery(TrustService.method.getConditions, { identity: uid });
  if (data === undefined || data.conditions.length === 0) return null;
  return (
    <>
      <dt>Only if</dt>
      <dd>
        <ul>
          {data.conditions.map(describeCondition).map((text) => (
            <li key={text} className="foreign">
              {text}
            </li>
          ))}
        </ul>
      </dd>
    </>
  );
}

function Bindings({ uid, rights }: IdentityPartProps) {
  const [open, setOpen] = useState<RoleBinding>();
  const { data: access } = useQuery(
    AccessService.method.listAccess,
    { identity: uid, pageSize: 200 },
    { retry: false },
  );
  const ends = new Map(access?.grants.map(({ roleBinding, endTime }) => [roleBinding, endTime]));
  const isWhole = access?.nextPageToken === "";
  const columns: Column<RoleBinding>[] = [
    { title: "Role", cell: ({ role }) => <span className="foreign">{role?.name}</span> },
    {
      title: "In",
      cell: ({ group }) => (
        <Link href={`/groups/${group?.uid}`} className="foreign">
          {group?.name}
        </Link>
      ),
    },
    {
      title: "Ends",
      cell: ({ uid: binding }) => (
        <Time at={ends.get(binding)} absent={isWhole ? "does not end" : "see the details"} relative />
      ),
    },
    { title: "Since", cell: ({ createTime }) => <Time at={createTime} /> },
    {
      title: "Details",
      isUntitled: true,
      cell: (binding) => (
        <Button look="quiet" isSmall onClick={() => setOpen(binding)}>
          Details<span className="visually-hidden"> of {binding.role?.name}</span>
        </Button>
      ),
    },
  ];
  return (
    <section className="stack" aria-label="Roles">
      <h2>Roles</h2>
      <PagedTable
        caption="Roles"
        method={RoleBindingsService.method.listRoleBindings}
        input={{ identity: uid }}
        rows={({ roleBindings }) => roleBindings}
        keyOf={(binding) => binding.uid}
        columns={columns}
        empty={
          <Empty title="No role that you may see">
            <p>Roles are granted on the page of a group, among its members.</p>
          </Empty>
        }
      />
      {open !== undefined && <BindingDialog binding={open} rights={rights} onClose={() => setOpen(undefined)} />}
    </section>
  );
}

interface RevokeTokensDialogProps {
  readonly identity: Identity;
  readonly onClose: () => void;
}

function RevokeTokensDialog({ identity: { uid, name }, onClose }: RevokeTokensDialogProps) {
  const revoke = useMutation(TokensService.method.revokeTokens);
  return (
    <ConfirmDialog
      title="Revoke all its tokens?"
      label="Revoke"
      run={() => revoke.mutateAsync({ uid })}
      done={`All tokens of ${name} were revoked.`}
      action={{
        method: "POST",
        path: `/tokens/v1/identities/${uid}:revokeTokens`,
        body: {},
        arbor: ["iam", "identities", "revoke-tokens", uid],
      }}
      onClose={onClose}
    >
      <p>
        Every token of <span className="foreign">{name}</span> is refused from the next call on. It keeps its roles, and
        can get new tokens.
      </p>
    </ConfirmDialog>
  );
}
