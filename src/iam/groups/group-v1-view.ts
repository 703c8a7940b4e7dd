import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Group, GroupSchema } from "#gen/chainguard/platform/iam/group_pb.js";
import type { Group as GroupV2 } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { limitsFor, type QuotaLimits } from "../../kernel/quotas.js";
import type { GroupRow } from "../../store/port.js";
import { groupView } from "./group.js";

/**
 * A stored group as version 1 shows it: a root with some of the quotas of its organisation, by the names
 * that they have there.
 *
 * @param limits the quotas of organisations that have none of their own
 */
export function groupRowV1(row: GroupRow, limits: QuotaLimits): Group {
  if (row.parentUid !== null) return groupV1(groupView(row), {});
  const { providers: idps, repos: repositories } = limitsFor(row.resourceLimits, limits);
  return groupV1(groupView(row), { idps, repositories });
}

function groupV1({ uid, createTime, updateTime, ...same }: GroupV2, resourceLimits: Group["resourceLimits"]): Group {
  const { name, description, verified, kind, status } = same;
  const view: MessageInitShape<typeof GroupSchema> = {
    ...{ id: uid, name, description, resourceLimits, verified, kind, status },
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  };
  return create(GroupSchema, view);
}
