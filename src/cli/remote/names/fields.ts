// Which fields of requests hold uids, and of which kinds of resources. Names in these fields are resolved to uids.
import type { DescField, DescMethod } from "@bufbuild/protobuf";
import { getKind, type Kind, kinds } from "../kinds.js";

/** A kind of resource whose uids fields hold. */
export type UidKind = Kind | "own role binding";

/** The kinds of the uids of a service: that of its resource, and those of the parents of its resource. */
interface ServiceKinds {
  readonly resource: UidKind;
  readonly parents: readonly Kind[];
}

const serviceOf = (kind: Kind): ServiceKinds => ({ resource: kind, parents: getKind(kind).parents });

// By the name of the service without its package, because versions 2 and 2beta1 have the same fields.
const services: Readonly<Record<string, ServiceKinds>> = {
  ...Object.fromEntries(kinds.map(({ service, kind }) => [service, serviceOf(kind)])),
  TermsService: serviceOf("group"),
  ImagesService: serviceOf("repo"),
  EventsService: serviceOf("subscription"),
  Advisories: serviceOf("advisory"),
  Registry: serviceOf("repo"),
  TokensService: serviceOf("identity"),
  TrustService: serviceOf("identity"),
  TemporaryBindingsService: serviceOf("role binding"),
  BindingsService: { resource: "own role binding", parents: [] },
};

/** The kinds that a field may name which takes any resource of an organisation. */
const anyKind: readonly Kind[] = ["group", "repo", "identity", "role", "identity provider"];

// By the name of the field, where it says the kind whatever the service is.
const byName: Readonly<Record<string, readonly Kind[]>> = Object.fromEntries(
  kinds.flatMap(({ kind, fields = [] }) => fields.map((field) => [field, [kind]])),
);

// By the names of message and field, where the name of the field alone does not say it.
const byMessage: Readonly<Record<string, readonly Kind[]>> = {
  "ExternalGroupRoleMapping.scope": ["group"],
  "BatchDeleteExternalGroupRoleMappingsRequest.names": ["external group role mapping"],
  "ServiceBindings.service_bindings": ["identity"],
  "Chainguard.service_bindings": ["identity"],
  // The service itself finds the overlay of a new binding by its name, the nearest one.
  "ListOverlayBindingsRequest.overlay": ["overlay"],
  "ListEventsRequest.scope": anyKind,
  "ListEventsRequest.subject": anyKind,
  "ListEventsRequest.actor": ["identity"],
  "TailEventsRequest.scope": anyKind,
  "TailEventsRequest.subject": anyKind,
  "TailEventsRequest.actor": ["identity"],
  "CheckRequest.identity": ["identity"],
  "CheckRequest.resource": anyKind,
  "ExplainRequest.identity": ["identity"],
  "ExplainRequest.resource": anyKind,
  "ListSubjectsRequest.resource": anyKind,
  "ListAccessRequest.identity": ["identity"],
  "ListAccessRequest.group": ["group"],
  "TestClaimsRequest.identity": ["identity"],
  "SearchNamesRequest.group": ["group"],
  "GetScimStatusRequest.identity_provider": ["identity provider"],
  "ListScimGroupsRequest.identity_provider": ["identity provider"],
  "RevokePersonTokensRequest.identity_provider": ["identity provider"],
  "TailRequest.scope": ["group"],
  "TailRequest.subject": anyKind,
  "GetChainRequest.scope": ["group"],
  "ListChainEntriesRequest.scope": ["group"],
  "CreateAdvisoryRequest.parent_id": ["group"],
  "CreateAdvisoryEventRequest.parent_id": ["advisory"],
  "AdvisoryEventFilter.parent_id": ["advisory"],
  "DeleteAdvisoryRequest.id": ["advisory"],
  "Advisory.id": ["advisory"],
  "AdvisoryFilter.id": ["advisory"],
  "CreateDeploymentRequest.parent_id": ["repo"],
  "GetRepoCountBySourceRequest.id": ["repo"],
  "ManifestDigestCountFilter.parent_id": ["group", "repo"],
  "Tag.id": ["tag"],
  "TagHistoryFilter.parent_id": ["tag"],
};

/** Finds the kinds of the resources whose uids a field of a method's request holds; undefined for other fields. */
export function findKinds(method: DescMethod, field: DescField): readonly UidKind[] | undefined {
  return findServiceKinds(method.parent.name, field);
}

/** As {@link findKinds}, by the name of the method's service without its package. */
export function findServiceKinds(service: string, field: DescField): readonly UidKind[] | undefined {
  const message = field.parent.name;
  const kinds = services[service];
  if (kinds === undefined) return byMessage[`${message}.${field.name}`];
  const { resource, parents } = kinds;
  if (message === "UIDPFilter") {
    const above = [...new Set<Kind>([...parents, "group"])];
    if (field.name === "children_of" || field.name === "descendants_of") return above;
    if (field.name === "ancestors_of") return [...new Set<UidKind>([...above, resource])];
    return field.name === "ids" ? [resource] : undefined;
  }
  const named = byMessage[`${message}.${field.name}`] ?? byName[field.name];
  // A message is no name, and a field such as `role` of a group invite is one.
  if (named !== undefined) return field.message === undefined ? named : undefined;
  if (field.name === "parent") return parents;
  return field.name === "uid" ? [resource] : undefined;
}
