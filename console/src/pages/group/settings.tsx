// Renames, describes and deletes a group.
import { Code } from "@connectrpc/connect";
import { useMutation } from "@connectrpc/connect-query";
import { type FormEvent, useState } from "react";
import { Link, useLocation } from "wouter";
import { type Group, GroupsService } from "#gen/chainguard/platform/iam/v2/groups_pb.js";
import { NAME_RULE, readProblem } from "../../api/errors.js";
import { refreshGroups } from "../../api/transport.js";
import { parentOf } from "../../api/uids.js";
import { Button } from "../../ui/button.js";
import { Commands } from "../../ui/commands.js";
import { Dialog } from "../../ui/dialog.js";
import { ProblemNote, TextField } from "../../ui/field.js";
import { FormActions } from "../../ui/form-actions.js";
import { Time } from "../../ui/time.js";
import { say } from "../../ui/toasts.js";
import { WhoMay } from "../../ui/who-may.js";
import type { GroupPartProps } from "./group.js";

export function Settings({ group, rights }: GroupPartProps) {
  const [isDeleting, setDeleting] = useState(false);
  const { uid, createTime, updateTime } = group;
  return (
    <section className="stack" aria-label="Settings">
      <dl className="facts">
        <dt>Created</dt>
        <dd>
          <Time at={createTime} />
        </dd>
        <dt>Changed</dt>
        <dd>
          <Time at={updateTime} />
        </dd>
      </dl>
      {rights.may("groups.update", uid) ? (
        <RenameForm group={group} key={`${group.name} ${group.description}`} />
      ) : (
        <WhoMay capability="groups.update" uid={uid} what="rename or describe this group" />
      )}
      {rights.may("groups.delete", uid) ? (
        <>
          <h2>Delete the group</h2>
          <p>Only an empty group can be deleted: first delete its groups, repos, workloads and what else is in it.</p>
          <div className="actions">
            <Button look="danger" onClick={() => setDeleting(true)}>
              Delete…
            </Button>
          </div>
        </>
      ) : (
        <WhoMay capability="groups.delete" uid={uid} what="delete this group" />
      )}
      {isDeleting && <DeleteDialog group={group} onClose={() => setDeleting(false)} />}
    </section>
  );
}

function RenameForm({ group }: { readonly group: Group }) {
  const { uid } = group;
  const [name, setName] = useState(group.name);
  const [description, setDescription] = useState(group.description);
  const update = useMutation(GroupsService.method.updateGroup);
  const problem = update.error ? readProblem(update.error) : undefined;

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    const request = { group: { uid, name, description }, updateMask: { paths: ["name", "description"] } };
    const updated = await update.mutateAsync(request).catch(() => undefined);
    if (updated === undefined) return;
    say(name === group.name ? `${name} was changed.` : `${group.name} is ${name} now.`);
    await refreshGroups();
  }

  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <h2>Name and description</h2>
      <TextField
        label="Name"
        hint={NAME_RULE}
        wrong={problem?.fields.get("name")}
        value={name}
        onChange={({ target }) => setName(target.value)}
      />
      <TextField
        label="Description"
        wrong={problem?.fields.get("description")}
        value={description}
        onChange={({ target }) => setDescription(target.value)}
      />
      <ProblemNote problem={problem} shown={["name", "description"]} />
      <div className="actions">
        <Button type="submit" look="main" isBusy={update.isPending}>
          Save
        </Button>
      </div>
      <Commands
        action={{
          method: "PATCH",
          path: `/iam/v2/groups/${uid}?updateMask=name,description`,
          body: { name, description },
          arbor: ["iam", "groups", "update", uid, "--name", name, "--description", description],
        }}
      />
    </form>
  );
}

function DeleteDialog({ group: { uid, name }, onClose }: { readonly group: Group; readonly onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [isTried, setTried] = useState(false);
  const [, navigate] = useLocation();
  const remove = useMutation(GroupsService.method.deleteGroup);
  const problem = remove.error ? readProblem(remove.error) : undefined;

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setTried(true);
    if (typed !== name) return;
    const removed = await remove.mutateAsync({ uid }).catch(() => undefined);
    if (removed === undefined) return;
    say(`${name} was deleted.`);
    const parent = parentOf(uid);
    navigate(parent === "" ? "/" : `/groups/${parent}?view=groups`);
    await refreshGroups();
  }

  return (
    <Dialog title="Delete this group?" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <p>It cannot be restored from here.</p>
        <TextField
          label={`Type “${name}” to delete it`}
          wrong={isTried && typed !== name ? "It is not the name of the group" : undefined}
          value={typed}
          onChange={({ target }) => setTyped(target.value)}
        />
        <ProblemNote problem={problem} />
        {problem?.code === Code.FailedPrecondition && (
          <p>
            <Link href={`/groups/${uid}?view=groups`} onClick={onClose}>
              See the groups in it
            </Link>
          </p>
        )}
        <FormActions label="Delete the group" isDanger isBusy={remove.isPending} onCancel={onClose} />
        <Commands
          action={{ method: "DELETE", path: `/iam/v2/groups/${uid}`, arbor: ["iam", "groups", "delete", uid] }}
        />
      </form>
    </Dialog>
  );
}
