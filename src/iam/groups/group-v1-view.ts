import { create } from "@bufbuild/protobuf";
import { type Group, GroupSchema } from "#gen/chainguard/platform/iam/group_pb.js";
import type { GroupRow } from "../../store/port.js";

/** A stored group as version 1 shows it. */
export function groupViewV1({ uid, name, description, resourceLimits, verified, kind }: GroupRow): Group {
  return create(GroupSchema, {
    id: uid,
    name,
    description,
    resourceLimits: { ...resourceLimits },
    verified,
    kind,
  });
}
