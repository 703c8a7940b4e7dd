import { notFound } from "../../kernel/errors.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { GroupRow } from "../../store/port.js";
import { groups } from "./group.js";

/**
 * The group in which something is to be created; that the caller may create there has been decided.
 *
 * @throws ApiError NOT_FOUND when it does not exist; the pipeline words that for who may not know.
 */
export async function requireParentGroup(uid: string, { tx }: UnaryCall): Promise<GroupRow> {
  const row = await tx.groups.get(uid);
  if (row === undefined) throw notFound(groups, uid);
  return row;
}
