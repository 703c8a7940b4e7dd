// The methods that are served, in every version, and what each is about, read
// from the descriptors.
import {
  type DescField,
  type DescMethod,
  type DescMethodUnary,
  getOption,
  hasOption,
  type Message,
} from "@bufbuild/protobuf";
import { iam, iam_scope } from "#gen/chainguard/annotations/annotations_pb.js";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";
import { createPlatformServices } from "../../src/app/services.js";
import { unavailableServices } from "../../src/app/unavailable-services.js";
import { randomIds } from "../../src/kernel/ids.js";
import { defaultLimits } from "../../src/kernel/quotas.js";
import { unavailableRegistryV1, unavailableVulnerabilitiesV1 } from "../../src/kernel/unavailable-methods.js";
import { createQuotas } from "../../src/pipeline/resource/quota.js";
import type { Store } from "../../src/store/store.js";
import type { Placed } from "../iam/populate.js";
import { isCampaign } from "../support/scale.js";
import { requestOf } from "./iam-clients.js";
import { imageDigest } from "./registry-things.js";

/** The services that are served, in every version. */
export const services = createPlatformServices({
  tokens: { create: () => "", read: async () => undefined },
  ids: randomIds,
  seal: async () => "",
  rootCreation: "users",
  limits: defaultLimits,
  quotas: createQuotas(defaultLimits),
  trustedIssuers: [],
  baseUrl: "https://iam.example",
  registry: undefined,
  // Nothing is called here.
  store: {} as Store,
});

/** Every method with one response, but for those that authenticate their callers by themselves. */
export const methods: readonly DescMethodUnary[] = services.flatMap(({ desc }) =>
  desc.methods.filter((one): one is DescMethodUnary => one.methodKind === "unary"),
);

/** Those that `npm test` calls: version 2 has the rules and handlers of its beta, which the matrix proves. */
export const calledMethods = methods.filter(({ parent }) => isCampaign || !parent.typeName.includes(".v2."));

/** A method as tests call it: `iam.v2.GroupsService.GetGroup`. */
export function nameOf({ name, parent }: DescMethodUnary): string {
  return `${parent.typeName.replace("chainguard.platform.", "")}.${name}`;
}

// Of both names of version 2 and of its beta alike: `GroupsService.GetGroup`.
const shortNameOf = ({ name, parent }: DescMethod) => `${parent.name}.${name}`;

const capitalise = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);
const unavailable: ReadonlySet<string> = new Set([
  ...Object.keys(unavailableRegistryV1).map((name) => `Registry.${capitalise(name)}`),
  ...Object.keys(unavailableVulnerabilitiesV1).map((name) => `Vulnerabilities.${capitalise(name)}`),
  ...unavailableServices.flatMap(({ desc }) => desc.methods.map(shortNameOf)),
  "GroupInvites.CreateWithGroup",
  "events.Identities.Create",
]);

/** Whether a method answers UNIMPLEMENTED to everybody whom it lets in. */
export function isUnavailable(method: DescMethodUnary): boolean {
  return unavailable.has(shortNameOf(method)) || unavailable.has(nameOf(method));
}

/** Methods declared unscoped whose handlers look at a place all the same, and the field that names it. */
const PLACED_BY_HANDLER: Readonly<Record<string, string>> = {
  // A root has no parent, so the method is unscoped and its handler looks at the parent.
  "GroupsService.CreateGroup": "parent",
  "Groups.Create": "parent",
  // Built-in roles belong to no group; of custom ones the handler looks at the group.
  "RolesService.GetRole": "uid",
};

const scopeFields = new Map<DescMethodUnary, readonly DescField[]>();

/** The fields that lead to the uid a method is guarded at: none, one, or a message and the field in it. */
export function findScopeField(method: DescMethodUnary): readonly DescField[] {
  // Options are decoded each time they are read.
  const known = scopeFields.get(method) ?? readScopeField(method);
  scopeFields.set(method, known);
  return known;
}

function readScopeField(method: DescMethodUnary): readonly DescField[] {
  const byHandler = PLACED_BY_HANDLER[shortNameOf(method)];
  if (byHandler) return method.input.fields.filter(({ name }) => name === byHandler);
  const { mode } = getOption(method, iam);
  if (mode.case !== "enabled" || mode.value.unscoped) return [];
  const findMarked = (fields: readonly DescField[]) =>
    fields.filter((field) => hasOption(field, iam_scope) && getOption(field, iam_scope));
  const [outer] = findMarked(method.input.fields);
  if (outer === undefined) return [];
  return outer.fieldKind === "message" ? [outer, ...findMarked(outer.message.fields)] : [outer];
}

// What does not follow from the names of the service and of the place field.
const subjects: readonly (readonly [RegExp, keyof Placed])[] = [
  [/ExternalGroupRoleMappings(Service)?\.(Create|BatchDelete)|Scim/, "identityProvider"],
  [/\.Create(Tag|OverlayBinding)$|^(ImagesService|StigReportsService)\./, "repo"],
  [/^Registry\.(UpdateTag|DeleteTag|ListTagHistory)$/, "tag"],
  [/^Registry\.(CreateRepo|GetRegistrySettings|UpdateRegistrySettings|ListSyncStatuses)$/, "group"],
  [/^Registry\./, "repo"],
  [/^Advisories\.UpdateAdvisoryEvent$/, "advisoryEvent"],
  [/^Advisories\.(Create|List)AdvisoryEvents?$/, "advisory"],
  [/\.(Create|BatchCreate)|^Terms|RequestGroupAccess$/, "group"],
  [/^GroupAccountAssociations\./, "accountAssociation"],
  [/^TemporaryBindingsService\.SetBindingEnd$/, "roleBinding"],
  [/^TokensService\.RevokeTokens$/, "identity"],
  [/^TokensService\.RevokePersonTokens$/, "identityProvider"],
  [/^TrustService\.[GS]etConditions$/, "identity"],
];

/** What of a group a method is about, which follows from its name. */
export function subjectOf(method: DescMethodUnary, placed: Placed): string {
  const name = shortNameOf(method);
  const known = subjects.find(([pattern]) => pattern.test(name))?.[1];
  if (known !== undefined) return placed[known];
  const kind = method.parent.name
    .replace(/Service$/, "")
    .replace(/ies$/, "y")
    .replace(/s$/, "");
  const key = kind.charAt(0).toLowerCase() + kind.slice(1);
  return (placed as unknown as Record<string, string>)[key] ?? placed.group;
}

/** A request about `uid`, with nothing else in it but the image that is asked for. */
export function requestAt(method: DescMethodUnary, uid: string, architecture = ""): Message {
  const [outer, inner] = findScopeField(method);
  // Part of a path, and of no path when it is empty.
  const required = isUnavailable(method) ? fillRequired(method) : {};
  if (outer === undefined)
    return requestOf(method, "package" in method.input.field ? { package: "package" } : required);
  const known: Readonly<Record<string, string>> = { digest: imageDigest, architecture, arch: architecture };
  const image = method.input.fields
    .filter(
      ({ name, scalar }) =>
        scalar !== undefined && Object.hasOwn(known, name) && /Image|Registry|Stig/.test(method.parent.name),
    )
    .map(({ localName }) => [localName, known[localName]]);
  const scope = { [outer.localName]: inner ? { [inner.localName]: uid } : uid };
  return requestOf(method, { ...required, ...Object.fromEntries(image), ...scope });
}

// Required fields are checked before the handler says that it does nothing.
function fillRequired({ input }: DescMethodUnary): object {
  // Version 1 marks no field as required.
  const isRequired = (field: DescField) =>
    field.name === "etag" || getOption(field, field_behavior).includes(FieldBehavior.REQUIRED);
  const required = input.fields.filter((field) => field.fieldKind !== "message" && isRequired(field));
  return Object.fromEntries(required.map(({ localName, fieldKind }) => [localName, fieldKind === "list" ? [{}] : "x"]));
}
