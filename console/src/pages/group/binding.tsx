// A role binding: when it ends, and who has granted it, as far as the viewer may read the audit log.
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { lazy, Suspense, useState } from "react";
import { AccessService, Origin } from "#gen/arbor/access/v1/access_pb.js";
import { AuditService } from "#gen/arbor/audit/v1/audit_pb.js";
import { TemporaryBindingsService } from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import type { RoleBinding } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { useEnds } from "../../api/ends.js";
import { readProblem } from "../../api/errors.js";
import type { Rights } from "../../api/rights.js";
import { refresh } from "../../api/transport.js";
import { parentOf } from "../../api/uids.js";
import { Button, CopyButton } from "../../ui/button.js";
import { Commands } from "../../ui/commands.js";
import { Dialog } from "../../ui/dialog.js";
import { ProblemNote } from "../../ui/field.js";
import { FormActions } from "../../ui/form-actions.js";
import { MemberName } from "../../ui/member-name.js";
import { Time } from "../../ui/time.js";
import { say } from "../../ui/toasts.js";
import { checkEnd, type EndChoice, EndField, endOf } from "./end-field.js";

const RevokeDialog = lazy(async () => ({ default: (await import("./revoke.js")).RevokeDialog }));

interface BindingDialogProps {
  readonly binding: RoleBinding;
  readonly rights: Rights;
  readonly onClose: () => void;
}

export function BindingDialog({ binding, rights, onClose }: BindingDialogProps) {
  const { uid, role, group, createTime, managedByUidp } = binding;
  const [part, setPart] = useState<"facts" | "end" | "revoke">("facts");
  const groupUid = parentOf(uid);
  const ends = useEnds(groupUid);
  if (part === "revoke") {
    return (
      <Suspense>
        <RevokeDialog bindings={[binding]} onClose={onClose} onRevoked={() => {}} />
      </Suspense>
    );
  }
  if (part === "end") return <EndDialog binding={binding} onClose={onClose} />;
  const isManual = managedByUidp === "";
  return (
    <Dialog title="A member" onClose={onClose}>
      <dl className="facts">
        <dt>Who</dt>
        <dd>
          <MemberName binding={binding} />
        </dd>
        <dt>Role</dt>
        <dd className="foreign">{role?.name}</dd>
        <dt>In</dt>
        <dd className="foreign">{group?.name} and all its subgroups</dd>
        <dt>Since</dt>
        <dd>
          <Time at={createTime} />
        </dd>
        <dt>Ends</dt>
        <dd>
          <Time at={ends.endOf(uid)} absent={ends.isWhole ? "does not end" : "not known"} />
        </dd>
        <dt>Granted by</dt>
        <dd>
          <GrantedBy binding={binding} />
        </dd>
        <dt>Uid</dt>
        <dd>
          <code>{uid}</code> <CopyButton text={uid} what="the uid of the role binding" />
        </dd>
      </dl>
      {!isManual && <p className="note">The directory of the organisation manages it: change it there.</p>}
      {isManual && (
        <div className="actions">
          {rights.may("role_bindings.update", groupUid) && (
            <Button onClick={() => setPart("end")}>Change when it ends…</Button>
          )}
          {rights.may("role_bindings.delete", groupUid) && (
            <Button look="danger" onClick={() => setPart("revoke")}>
              Revoke…
            </Button>
          )}
        </div>
      )}
    </Dialog>
  );
}

function GrantedBy({ binding }: { readonly binding: RoleBinding }) {
  const { uid, identity } = binding;
  const request = { scope: uid, subject: uid, pageSize: 1, orderBy: "time asc" };
  const { data, error } = useQuery(AuditService.method.listEvents, request, { retry: false });
  if (error !== null) return <span className="soft">you may not read the audit log here</span>;
  const [event] = data?.events ?? [];
  if (data === undefined) return <span className="soft">…</span>;
  if (event === undefined) return <OriginOf binding={uid} identity={identity?.uid ?? ""} />;
  return (
    <>
      <span className="foreign">{event.actorName || event.actorUid || event.method}</span>, <Time at={event.time} />
    </>
  );
}

/** How a binding came about that nobody has granted by a call. */
function OriginOf({ binding, identity }: { readonly binding: string; readonly identity: string }) {
  const request = { identity, group: parentOf(binding), pageSize: 200 };
  const { data } = useQuery(AccessService.method.listAccess, request, { retry: false });
  const origin = data?.grants.find(({ roleBinding }) => roleBinding === binding)?.origin;
  if (origin === Origin.JOINED) return <span>nobody: joined with an invite, or at the first sign-in</span>;
  if (origin === Origin.DIRECTORY) return <span>nobody: the directory grants it</span>;
  if (origin === Origin.CREATED_GROUP) return <span>nobody: made the organisation</span>;
  return <span className="soft">not recorded</span>;
}

function EndDialog({ binding, onClose }: { readonly binding: RoleBinding; readonly onClose: () => void }) {
  const { uid } = binding;
  const [choice, setChoice] = useState<EndChoice>({ kind: "never" });
  const setEnd = useMutation(TemporaryBindingsService.method.setBindingEnd);
  const problem = setEnd.error ? readProblem(setEnd.error) : undefined;
  const [isTried, setTried] = useState(false);
  const end = endOf(choice);
  const wrong = checkEnd(choice);

  async function submit(): Promise<void> {
    setTried(true);
    if (wrong !== undefined) return;
    const request: { uid: string; endTime?: Timestamp } = { uid };
    if (end !== undefined) request.endTime = timestampFromDate(end);
    const changed = await setEnd.mutateAsync(request).catch(() => undefined);
    if (changed === undefined) return;
    say("When the role ends was changed.");
    await refresh();
    onClose();
  }

  const body = end === undefined ? {} : { endTime: end.toISOString() };
  return (
    <Dialog title="When does it end?" onClose={onClose}>
      <EndField
        choice={choice}
        onChange={setChoice}
        wrong={isTried ? (wrong ?? problem?.fields.get("end_time")) : undefined}
      />
      <ProblemNote problem={problem} shown={["end_time"]} />
      <FormActions label="Change" isBusy={setEnd.isPending} onConfirm={() => void submit()} onCancel={onClose} />
      <Commands
        action={{
          method: "POST",
          path: `/bindings/v1/temporaryBindings/${uid}:setEnd`,
          body,
          arbor: ["iam", "role-bindings", "set-end", uid].concat(
            end === undefined ? ["--never"] : ["--expires", end.toISOString()],
          ),
        }}
      />
    </Dialog>
  );
}
