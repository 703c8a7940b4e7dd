// Makes an invite. Its code is shown once: the service keeps only a hash.
import { useMutation } from "@connectrpc/connect-query";
import { type FormEvent, useState } from "react";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2/group_invites_pb.js";
import { readProblem } from "../../api/errors.js";
import { formatInviteLink } from "../../api/invites.js";
import { refresh } from "../../api/transport.js";
import { Button, CopyButton } from "../../ui/button.js";
import { Commands } from "../../ui/commands.js";
import { GroupPath } from "../../ui/crumbs.js";
import { Dialog } from "../../ui/dialog.js";
import { ProblemNote, SelectField, TextField } from "../../ui/field.js";
import { FormActions } from "../../ui/form-actions.js";
import { useDraft } from "../../ui/use-draft.js";
import { RoleField } from "./role-field.js";

interface InviteDialogProps {
  readonly group: string;
  readonly onClose: () => void;
}

const DAY_S = 24 * 3600;
const LIVES = [
  ["1 day", DAY_S],
  ["7 days", 7 * DAY_S],
  ["30 days", 30 * DAY_S],
] as const;

export function InviteDialog({ group, onClose }: InviteDialogProps) {
  const initial = { role: "", email: "", lifeS: 7 * DAY_S, singleUse: true };
  const [draft, setDraft, dropDraft] = useDraft(`invite into ${group}`, initial);
  const [isTried, setTried] = useState(false);
  const create = useMutation(GroupInvitesService.method.createGroupInvite);
  const problem = create.error ? readProblem(create.error) : undefined;
  const { role, email, lifeS, singleUse } = draft;

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setTried(true);
    if (role === "") return;
    const groupInvite = { roleUid: role, email, singleUse, ttl: { seconds: BigInt(lifeS) } };
    const created = await create.mutateAsync({ parent: group, groupInvite }).catch(() => undefined);
    if (created === undefined) return;
    dropDraft();
    await refresh();
  }

  if (create.data !== undefined) {
    const link = formatInviteLink(create.data.code);
    return (
      <Dialog title="The invite" onClose={onClose}>
        <p>
          Send this link{" "}
          {email === "" ? (
            "to whom you invite"
          ) : (
            <>
              to <span className="foreign">{email}</span>
            </>
          )}
          . It is shown only now.
        </p>
        <TextField label="Link" readOnly value={link} onFocus={({ target }) => target.select()} />
        <div className="actions">
          <CopyButton text={link} what="the link" look="main" />
          <Button onClick={onClose}>Done</Button>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title="Invite people" onClose={onClose}>
      <p className="soft">
        Into <GroupPath group={group} />. The role does not end by itself; the time below is that of the link.
      </p>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <RoleField
          group={group}
          chosen={role}
          onChange={(next) => setDraft({ ...draft, role: next })}
          wrong={isTried && role === "" ? "Choose a role" : problem?.fields.get("role_uid")}
        />
        <TextField
          label="E-mail address"
          hint="Only this person can accept it. Left empty: whoever has the link"
          type="email"
          wrong={problem?.fields.get("email")}
          value={email}
          onChange={({ target }) => setDraft({ ...draft, email: target.value })}
        />
        <SelectField
          label="The link works for"
          wrong={problem?.fields.get("ttl")}
          value={lifeS}
          onChange={({ target }) => setDraft({ ...draft, lifeS: Number(target.value) })}
        >
          {LIVES.map(([text, seconds]) => (
            <option key={seconds} value={seconds}>
              {text}
            </option>
          ))}
        </SelectField>
        <label className="choice">
          <input
            type="checkbox"
            checked={singleUse}
            onChange={({ target }) => setDraft({ ...draft, singleUse: target.checked })}
          />
          Only one person can accept it
        </label>
        <ProblemNote problem={problem} shown={["role_uid", "email", "ttl"]} />
        <FormActions label="Make the invite" isBusy={create.isPending} onCancel={onClose} />
        <Commands
          action={{
            method: "POST",
            path: `/iam/v2/groupInvites/${group}`,
            body: { roleUid: role || "ROLE", ttl: `${lifeS}s`, singleUse, ...(email !== "" && { email }) },
            arbor: [
              ...["iam", "group-invites", "create", "--parent", group, "--role", role || "ROLE", "--ttl", `${lifeS}s`],
              ...(email === "" ? [] : ["--email", email]),
              ...(singleUse ? ["--single-use"] : []),
            ],
          }}
        />
      </form>
    </Dialog>
  );
}
