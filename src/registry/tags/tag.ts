// What a tag is: its fields and their rules, the family it belongs to, and how
// it is shown.
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Tag, TagSchema } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { defineResource } from "../../pipeline/resource/define.js";
import type { FieldRule } from "../../pipeline/resource/rules.js";
import type { TagFamily, TagRow } from "../../store/port.js";
import { isDigest } from "../oci/notification.js";
import { isLabels, isTagNameField } from "../repos/repo-rules.js";

const REFERRER = /^sha256-/;
const DATE = /-20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])$/;
const EPOCH = /-r[0-9]+$/;

/** The rule for digests of manifests. */
export const isDigestField: FieldRule = (value, field) =>
  isDigest(String(value)) ? undefined : `${field} must be a digest, such as sha256: and 64 hexadecimal digits`;

/** The tag resource. */
export const tags = defineResource({
  noun: "tag",
  type: "registry.chainguard.dev/Tag",
  message: TagSchema,
  sort: ["uid", "name", "updated_at"],
  mutable: {
    name: isTagNameField,
    digest: isDigestField,
    deprecated: () => undefined,
    bundles: isLabels,
  },
});

/** The family that a tag belongs to by its name; lists hide all but 0 unless asked. */
export function familyOf(name: string): TagFamily {
  if (REFERRER.test(name)) return 1;
  if (DATE.test(name)) return 2;
  return EPOCH.test(name) ? 3 : 0;
}

/** A stored tag as version 2 shows it. */
export function tagView({ uid, name, digest, deprecated, bundles, updateTimeMs }: TagRow): Tag {
  return create(TagSchema, { uid, name, digest, deprecated, bundles, updateTime: timestampFromMs(updateTimeMs) });
}
