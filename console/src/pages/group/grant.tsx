// Grants a role in a group, to one or several identities.
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { type FormEvent, useState } from "react";
import { TemporaryBindingsService } from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { type Problem, readProblem } from "../../api/errors.js";
import { refresh } from "../../api/transport.js";
import { Commands } from "../../ui/commands.js";
import { GroupPath } from "../../ui/crumbs.js";
import { Dialog } from "../../ui/dialog.js";
import { ProblemNote } from "../../ui/field.js";
import { FormActions } from "../../ui/form-actions.js";
import { isolate } from "../../ui/isolate.js";
import { say } from "../../ui/toasts.js";
import { useDraft } from "../../ui/use-draft.js";
import { checkEnd, type EndChoice, EndField, endOf } from "./end-field.js";
import { RoleField } from "./role-field.js";
import { type Chosen, WhoField } from "./who-field.js";

interface GrantDialogProps {
  readonly group: string;
  readonly onClose: () => void;
}

interface Draft {
  readonly who: readonly Chosen[];
  readonly role: string;
  readonly end: EndChoice;
}

const EMPTY: Draft = { who: [], role: "", end: { kind: "never" } };

export function GrantDialog({ group, onClose }: GrantDialogProps) {
  const [draft, setDraft, dropDraft] = useDraft<Draft>(`grant in ${group}`, EMPTY);
  const [isTried, setTried] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const transport = useTransport();
  const { who, role, end } = draft;
  const wrongEnd = checkEnd(end);

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setTried(true);
    if (who.length === 0 || role === "" || wrongEnd !== undefined) return;
    setBusy(true);
    setProblem(undefined);
    const granted: string[] = [];
    try {
      for (const { uid } of who) {
        await grant(uid);
        granted.push(uid);
      }
      dropDraft();
      onClose();
    } catch (error) {
      // Those that were granted are done; the others stay chosen.
      setDraft({ ...draft, who: who.filter(({ uid }) => !granted.includes(uid)) });
      setProblem(readProblem(error));
    } finally {
      setBusy(false);
      const names = who.filter(({ uid }) => granted.includes(uid)).map(({ name }) => isolate(name));
      if (names.length > 0) say(`The role was granted to ${names.join(", ")}.`);
      await refresh();
    }
  }

  function grant(identityUid: string): Promise<unknown> {
    const date = endOf(end);
    if (date === undefined) {
      const roleBinding = { identityUid, roleUid: role };
      return createClient(RoleBindingsService, transport).createRoleBinding({ parent: group, roleBinding });
    }
    const request = { parent: group, identityUid, roleUid: role, endTime: timestampFromDate(date) };
    return createClient(TemporaryBindingsService, transport).createTemporaryBinding(request);
  }

  const date = endOf(end);
  const identityUid = who[0]?.uid ?? "IDENTITY";
  const roleUid = role || "ROLE";
  return (
    <Dialog title="Grant a role" onClose={onClose}>
      <p className="soft">
        In <GroupPath group={group} /> and all its subgroups
      </p>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <WhoField
          chosen={who}
          onChange={(next) => setDraft({ ...draft, who: next })}
          wrong={isTried && who.length === 0 ? "Choose at least one" : problem?.fields.get("identity_uid")}
        />
        <RoleField
          group={group}
          chosen={role}
          onChange={(next) => setDraft({ ...draft, role: next })}
          wrong={isTried && role === "" ? "Choose a role" : problem?.fields.get("role_uid")}
        />
        <EndField
          choice={end}
          onChange={(next) => {
            setTried(false);
            setDraft({ ...draft, end: next });
          }}
          wrong={isTried ? (wrongEnd ?? problem?.fields.get("end_time")) : undefined}
        />
        <ProblemNote problem={problem} shown={["identity_uid", "role_uid", "end_time"]} />
        <FormActions label="Grant" isBusy={isBusy} onCancel={onClose} />
        <Commands
          action={{
            method: "POST",
            path: `${date === undefined ? "/iam/v2/roleBindings" : "/bindings/v1/temporaryBindings"}/${group}`,
            body: { identityUid, roleUid, ...(date !== undefined && { endTime: date.toISOString() }) },
            arbor: [
              ...["iam", "role-bindings", "create", "--parent", group, "--identity", identityUid, "--role", roleUid],
              ...(date === undefined ? [] : ["--expires", date.toISOString()]),
            ],
          }}
        />
      </form>
    </Dialog>
  );
}
