import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Tag, TagSchema } from "#gen/chainguard/platform/registry/tag_pb.js";
import type { TagRow } from "../../store/port.js";

/** A stored tag as version 1 shows it: with the time of its creation, which version 2 leaves out. */
export function tagV1({ uid, name, digest, deprecated, bundles, createTimeMs, updateTimeMs }: TagRow): Tag {
  const updatedAt = timestampFromMs(updateTimeMs);
  const createdAt = timestampFromMs(createTimeMs);
  return create(TagSchema, {
    id: uid,
    name,
    digest,
    deprecated,
    bundles,
    lastUpdated: updatedAt,
    createdAt,
    updatedAt,
  });
}
