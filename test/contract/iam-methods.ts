// The methods that are served, and what each is about, read from the descriptors.
import { type DescField, type DescMethodUnary, getOption, hasOption, type Message } from "@bufbuild/protobuf";
import { iam, iam_scope } from "#gen/chainguard/annotations/annotations_pb.js";
import { ImagesService } from "#gen/chainguard/platform/registry/v2beta1/images_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { TagsService } from "#gen/chainguard/platform/registry/v2beta1/tags_pb.js";
import { AdvisoriesService } from "#gen/chainguard/platform/vulnerabilities/v2beta1/advisories_pb.js";
import { iamServices } from "../../src/iam/services.js";
import { randomIds } from "../../src/kernel/ids.js";
import type { Placed } from "../iam/populate.js";
import { requestOf } from "./iam-clients.js";
import { imageDigest } from "./registry-things.js";

const ofIam = iamServices({
  tokens: { make: () => "", read: () => undefined },
  ids: randomIds,
  seal: () => "",
  rootCreation: "users",
  trustedIssuers: [],
});
const services = [...ofIam.map(({ desc }) => desc), ReposService, TagsService, ImagesService, AdvisoriesService];
/** Every method with one answer, but for those that authenticate their callers by themselves. */
export const methods: readonly DescMethodUnary[] = services.flatMap((desc) =>
  desc.methods.filter((one): one is DescMethodUnary => one.methodKind === "unary"),
);

/** Methods declared unscoped whose handlers look at a place all the same, and the field that names it. */
const PLACED_BY_HANDLER: Readonly<Record<string, { field: string; reason: string }>> = {
  CreateGroup: {
    field: "parent",
    reason: "a root has no parent, so the method is unscoped and its handler looks at the parent",
  },
  GetRole: { field: "uid", reason: "built-in roles lie in no group; of custom ones the handler looks at the group" },
};

/** The fields that lead to the uid a method is guarded at: none, one, or a message and the field in it. */
export function placeFieldOf(method: DescMethodUnary): readonly DescField[] {
  const byHandler = PLACED_BY_HANDLER[method.name];
  if (byHandler) return method.input.fields.filter(({ name }) => name === byHandler.field);
  const { mode } = getOption(method, iam);
  if (mode.case !== "enabled" || mode.value.unscoped) return [];
  const marked = (fields: readonly DescField[]) =>
    fields.filter((field) => hasOption(field, iam_scope) && getOption(field, iam_scope));
  const [outer] = marked(method.input.fields);
  if (outer === undefined) return [];
  return outer.fieldKind === "message" ? [outer, ...marked(outer.message.fields)] : [outer];
}

/** What of a group a method is about, which follows from its name. */
export function subjectOf({ name, parent }: DescMethodUnary, placed: Placed): string {
  if (/^(CreateExternal|BatchDeleteExternal)|Scim/.test(name)) return placed.identityProvider;
  if (name === "CreateTag" || parent.name === ImagesService.name) return placed.repo;
  if (/^(Create|BatchCreate)/.test(name) || /^(AcceptTerms|ListTermsAcceptances|RequestGroupAccess)$/.test(name))
    return placed.group;
  const kind = /(\w+?)(Service)$/.exec(parent.name)?.[1]?.replace(/ies$/, "y").replace(/s$/, "") ?? "";
  const key = kind.charAt(0).toLowerCase() + kind.slice(1);
  return (placed as unknown as Record<string, string>)[key] ?? placed.group;
}

/** A request about `uid`, with nothing else in it but the image that is asked for. */
export function requestAt(method: DescMethodUnary, uid: string, architecture = ""): Message {
  const [outer, inner] = placeFieldOf(method);
  if (outer === undefined) return requestOf(method, {});
  const image = method.parent.name === ImagesService.name ? { digest: imageDigest, architecture } : {};
  return requestOf(method, { ...image, [outer.localName]: inner ? { [inner.localName]: uid } : uid });
}
