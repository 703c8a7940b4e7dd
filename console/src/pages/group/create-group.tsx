import { useMutation } from "@connectrpc/connect-query";
import { type FormEvent, useState } from "react";
import { useLocation } from "wouter";
import { GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { NAME_RULE, readProblem } from "../../api/errors.js";
import { refreshGroups } from "../../api/transport.js";
import { Commands } from "../../ui/commands.js";
import { Dialog } from "../../ui/dialog.js";
import { ProblemNote, TextField } from "../../ui/field.js";
import { FormActions } from "../../ui/form-actions.js";
import { say } from "../../ui/toasts.js";
import { useDraft } from "../../ui/use-draft.js";

interface CreateGroupDialogProps {
  /** The uid of the group to create it in; empty for an organisation. */
  readonly parent: string;
  readonly onClose: () => void;
}

export function CreateGroupDialog({ parent, onClose }: CreateGroupDialogProps) {
  const [draft, setDraft, dropDraft] = useDraft(`group in ${parent}`, { name: "", description: "" });
  const [isTried, setTried] = useState(false);
  const [, navigate] = useLocation();
  const create = useMutation(GroupsService.method.createGroup);
  const problem = create.error ? readProblem(create.error) : undefined;
  const what = parent === "" ? "organisation" : "group";
  const { name, description } = draft;

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setTried(true);
    if (name === "") return;
    const created = await create.mutateAsync({ parent, group: { name, description } }).catch(() => undefined);
    if (created === undefined) return;
    dropDraft();
    say(`${created.name} was created.`);
    await refreshGroups();
    navigate(`/groups/${created.uid}`);
  }

  const parentPath = parent === "" ? "" : `/${parent}`;
  return (
    <Dialog title={`New ${what}`} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <TextField
          label="Name"
          hint={NAME_RULE}
          wrong={isTried && name === "" ? "A name is needed" : problem?.fields.get("name")}
          value={name}
          onChange={(event) => setDraft({ ...draft, name: event.target.value })}
        />
        <TextField
          label="Description"
          wrong={problem?.fields.get("description")}
          value={description}
          onChange={(event) => setDraft({ ...draft, description: event.target.value })}
        />
        <ProblemNote problem={problem} shown={["name", "description"]} />
        <FormActions label="Create" isBusy={create.isPending} onCancel={onClose} />
        <Commands
          action={{
            method: "POST",
            path: `/iam/v2/groups${parentPath || "/"}`,
            body: { name, description },
            arbor: ["iam", "groups", "create", ...(parent === "" ? [] : ["--parent", parent]), "--name", name].concat(
              description === "" ? [] : ["--description", description],
            ),
          }}
        />
      </form>
    </Dialog>
  );
}
