// What an invite gives, for a page that asks somebody whether to accept it.
import { rootOf } from "../../kernel/uidp.js";
import type { Tx } from "../../store/port.js";
import { capabilityNamesIn } from "../roles/capability-names.js";
import { type Invitee, requireAcceptable, requireInvite } from "./accept-invite.js";

/** An invite that somebody may accept. */
export interface InvitePreview {
  readonly invitedBy: {
    readonly uid: string;
    /** What that person or the owner of that identity chose; empty where they chose none. */
    readonly name: string;
    /** Confirmed by a login provider of the service; empty where none was. */
    readonly email: string;
  };
  readonly organisation: {
    readonly name: string;
    /** Whether the operator verified that the name is theirs. */
    readonly verified: boolean;
  };
  /** The group that the role is given at; undefined where that is the whole organisation. */
  readonly groupName?: string;
  readonly role: {
    readonly name: string;
    readonly description: string;
    /** The dotted names of what the role allows. */
    readonly capabilities: readonly string[];
  };
}

/**
 * What somebody would be given by an invite.
 *
 * @param code of the invite
 * @param nowMs the time in epoch milliseconds
 * @throws ApiError PERMISSION_DENIED when the code is wrong, has expired or was used, or is not for them.
 */
export async function previewInvite(tx: Tx, code: string, invitee: Invitee, nowMs: number): Promise<InvitePreview> {
  const invite = await requireInvite(tx, code, nowMs);
  const role = await requireAcceptable(tx, invite, invitee, nowMs);
  const { name, description, capabilities } = role;
  const maker = await tx.identities.get(invite.createdBy);
  const root = await tx.groups.get(rootOf(invite.groupUid));
  const group = await tx.groups.get(invite.groupUid);
  return {
    invitedBy: { uid: invite.createdBy, name: maker?.name ?? "", email: maker?.email ?? "" },
    organisation: { name: root?.name ?? "", verified: root?.verified ?? false },
    ...(group !== undefined && group.uid !== root?.uid && { groupName: group.name }),
    role: { name, description, capabilities: capabilityNamesIn(capabilities) },
  };
}
