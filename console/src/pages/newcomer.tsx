// What a person sees who has no rights: who they are, and how they get some.
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Link } from "wouter";
import { BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { readProblem } from "../api/errors.js";
import { useCaller } from "../session/use-session.js";
import { Button, CopyButton } from "../ui/button.js";
import { ProblemNote } from "../ui/field.js";
import { Empty } from "../ui/page.js";

export function Newcomer() {
  const caller = useCaller();
  const { data: me } = useQuery(Auth.method.validate);
  const { data: pending } = useQuery(BindingsService.method.listBindings, { pending: true, pageSize: 1 });
  const { data: lookup } = useQuery(GroupsService.method.lookupGroup, {}, { retry: false });
  const found = lookup?.group;
  const pendingCount = Number(pending?.totalCount ?? 0);
  return (
    <div className="stack">
      <Empty title="You are in no organisation yet">
        <p>An owner of an organisation can invite you, or grant you a role by your uid. You can also make your own.</p>
        <dl className="facts">
          <dt>Your uid</dt>
          <dd>
            <code>{caller}</code> <CopyButton text={caller} what="your uid" />
          </dd>
          {me !== undefined && me.email !== "" && (
            <>
              <dt>Your e-mail address</dt>
              <dd>{me.email}</dd>
            </>
          )}
        </dl>
        <div className="actions">
          <Link href="/join" className="button">
            I have an invite
          </Link>
          {pendingCount > 0 && (
            <Link href="/account" className="button main">
              {pendingCount} {pendingCount === 1 ? "role waits" : "roles wait"} for you
            </Link>
          )}
        </div>
      </Empty>
      {found !== undefined && <AccessRequest uid={found.uid} name={found.name} />}
    </div>
  );
}

function AccessRequest({ uid, name }: { readonly uid: string; readonly name: string }) {
  const request = useMutation(GroupsService.method.requestGroupAccess);
  return (
    <div className="note">
      <p>
        Your e-mail address belongs to <strong className="foreign">{name}</strong>.
      </p>
      {request.isSuccess ? (
        <p role="status">Your request is recorded. The owners of {name} see it and can invite you.</p>
      ) : (
        <div className="actions">
          <Button isBusy={request.isPending} onClick={() => request.mutate({ groupUid: uid })}>
            Request access
          </Button>
        </div>
      )}
      <ProblemNote problem={request.error ? readProblem(request.error) : undefined} />
    </div>
  );
}
