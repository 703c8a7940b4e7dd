// Revokes several role bindings, one call each, and says of each what came of it.
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useState } from "react";
import { type RoleBinding, RoleBindingsService } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import { readProblem } from "../../api/errors.js";
import { refresh } from "../../api/transport.js";
import { useCaller } from "../../session/use-session.js";
import { Button } from "../../ui/button.js";
import { Commands } from "../../ui/commands.js";
import { Dialog } from "../../ui/dialog.js";
import { MemberName } from "../../ui/member-name.js";
import { say } from "../../ui/toasts.js";

interface RevokeDialogProps {
  readonly bindings: readonly RoleBinding[];
  readonly onClose: () => void;
  readonly onRevoked: (uids: readonly string[]) => void;
}

export function RevokeDialog({ bindings, onClose, onRevoked }: RevokeDialogProps) {
  // Those that were asked for when the dialog opened: a revoked one stays in the list with its outcome.
  const [asked] = useState(bindings);
  const [failed, setFailed] = useState<ReadonlyMap<string, string>>(new Map());
  const [isBusy, setBusy] = useState(false);
  const client = createClient(RoleBindingsService, useTransport());
  const caller = useCaller();

  async function revoke(): Promise<void> {
    setBusy(true);
    const revoked: string[] = [];
    const problems = new Map<string, string>();
    for (const { uid } of asked) {
      try {
        await client.deleteRoleBinding({ uid });
        revoked.push(uid);
      } catch (error) {
        const { text, preconditions } = readProblem(error);
        problems.set(uid, [text, ...preconditions].join(" "));
      }
    }
    setBusy(false);
    setFailed(problems);
    onRevoked(revoked);
    if (revoked.length > 0) say(`${revoked.length} ${revoked.length === 1 ? "role was" : "roles were"} revoked.`);
    await refresh();
    if (problems.size === 0) onClose();
  }

  const [first] = asked;
  const isOwn = asked.some(({ identity }) => identity?.uid === caller);
  return (
    <Dialog title={asked.length === 1 ? "Revoke this role?" : `Revoke ${asked.length} roles?`} onClose={onClose}>
      <ul>
        {asked.map((binding) => (
          <li key={binding.uid}>
            <MemberName binding={binding} /> is <span className="foreign">{binding.role?.name}</span> in{" "}
            <span className="foreign">{binding.group?.name}</span>
            {failed.has(binding.uid) && (
              <p className="note wrong" role="alert">
                {failed.get(binding.uid)}
              </p>
            )}
          </li>
        ))}
      </ul>
      {isOwn && (
        <p className="note warn">One of them is your own: you may not be able to grant it to yourself again.</p>
      )}
      <p>It takes effect with their next call.</p>
      <div className="actions">
        <Button look="danger" isBusy={isBusy} onClick={() => void revoke()}>
          {failed.size > 0 ? "Try again" : "Revoke"}
        </Button>
        <Button onClick={onClose}>{failed.size > 0 ? "Close" : "Cancel"}</Button>
      </div>
      {first !== undefined && (
        <Commands
          action={{
            method: "DELETE",
            path: `/iam/v2/roleBindings/${first.uid}`,
            arbor: ["iam", "role-bindings", "delete", first.uid],
          }}
        />
      )}
    </Dialog>
  );
}
