import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Group, GroupSchema } from "#gen/chainguard/platform/iam/group_pb.js";
import type { Group as GroupV2 } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import type { GroupRow } from "../../store/port.js";
import { groupView } from "./group.js";

/** A stored group as version 1 shows it. */
export const groupRowV1 = (row: GroupRow): Group => groupV1(groupView(row));

/** A group of version 2 as version 1 shows it. */
export function groupV1({ uid, createTime, updateTime, ...same }: GroupV2): Group {
  const { name, description, resourceLimits, verified, kind, status } = same;
  const view: MessageInitShape<typeof GroupSchema> = {
    ...{ id: uid, name, description, resourceLimits, verified, kind, status },
    ...(createTime && { createdAt: createTime }),
    ...(updateTime && { updatedAt: updateTime }),
  };
  return create(GroupSchema, view);
}
