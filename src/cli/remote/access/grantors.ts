// Who can grant what a call was denied for, at the end of its error.
import { AccessService, type IdentitySubject } from "#gen/arbor/access/v1/access_pb.js";
import type { Connection } from "../../../client/index.js";
import { hostOwnerUid } from "../../../kernel/ids.js";
import { rootOf, UIDP_PATTERN } from "../../../kernel/uidp.js";
import { escapeControls } from "../../output/terminal.js";

/** How long the command waits for it, in milliseconds. */
const WAIT_MS = 2_000;
/** How many are named. */
const MAX_NAMED = 5;
/** The largest page of the service, so that the others are counted by the one call. */
const PAGE_SIZE = 200;

/** Who grants a capability needs this one, and the capability itself. */
const BIND = "role_bindings.create";

const DENIED = new RegExp(
  `^Permission denied: ([\\w.-]+(?: and [\\w.-]+)*) at (${UIDP_PATTERN}) \\(or it might not exist\\)$`,
);

/**
 * Finds who can grant the capabilities that an error names, as far as the caller may know: those who may create role
 * bindings there and have the capabilities.
 *
 * @param text the error of the service
 * @returns a sentence; undefined for another error, and when the service does not say who
 */
export async function findGrantors(text: string, connection: Connection): Promise<string | undefined> {
  const [, needed, resource = ""] = DENIED.exec(text) ?? [];
  if (needed === undefined) return undefined;
  const actions = [...new Set([BIND, ...needed.split(" and ")])];
  const request = { actions, resource, pageSize: PAGE_SIZE };
  // The deadline of the call includes its retries; the signal also ends the wait for a connection or for a new token.
  const options = { timeoutMs: WAIT_MS, signal: AbortSignal.timeout(WAIT_MS) };
  try {
    const { subjects, nextPageToken } = await connection.client(AccessService).listSubjects(request, options);
    const names = subjects.flatMap(({ subject }) =>
      subject.case === "identity" ? [formatName(subject.value, resource)] : [],
    );
    return names.length === 0 ? undefined : formatNames(names, nextPageToken !== "");
  } catch {
    // The error of the command is the one that matters.
    return undefined;
  }
}

function formatName({ uid, name, email }: IdentitySubject, resource: string): string {
  // Bootstrap calls it by its role.
  if (uid === hostOwnerUid(rootOf(resource))) return "the operator (on the host)";
  const text = name === "" || email === "" ? name || email || uid : `${name} (${email})`;
  return escapeControls(text);
}

function formatNames(names: readonly string[], hasMore: boolean): string {
  const others = names.length - MAX_NAMED;
  const rest = hasMore ? " and others" : others > 0 ? ` and ${others} more` : "";
  return `can be granted by: ${names.slice(0, MAX_NAMED).join(", ")}${rest}`;
}
