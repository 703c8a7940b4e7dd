// How people read the names of services: `Groups` for `chainguard.platform.iam.v2.GroupsService`.

/** A service as people read it. */
export interface ServiceName {
  /** Such as `Role bindings`. */
  readonly resource: string;
  /** `v2`, `v2beta1`, `v1`, or empty for a service that has one version alone. */
  readonly version: string;
}

/** The packages whose services have no version in their names and are version 1 of those that have. */
const V1 = /^chainguard\.platform\.(?:events|iam|ping|registry|tenant|vulnerabilities\.v1)\.\w+$/;

/** What version 1 calls otherwise, or two services call alike. */
const others: Readonly<Record<string, string>> = {
  "arbor.events.v1.EventsService": "Event deliveries",
  "chainguard.platform.auth.Auth": "Registration",
  "chainguard.platform.events.Identities": "Event identities",
  "chainguard.platform.iam.GroupAccountAssociations": "Account associations",
};

/** Names a service by the name of its type. */
export function nameService(typeName: string): ServiceName {
  const parts = typeName.split(".");
  const version = V1.test(typeName) ? "v1" : (/\.(v2(?:beta1)?)\./.exec(typeName)?.[1] ?? "");
  const words = (parts.at(-1) ?? "")
    .replace(/(?<=.)Service$/, "")
    .replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return { resource: others[typeName] ?? words, version };
}

/** Orders services: version 2 first, version 1 last, and by resource. */
export function compareServices(one: string, other: string): number {
  const [a, b] = [nameService(one), nameService(other)];
  return RANKS.indexOf(a.version) - RANKS.indexOf(b.version) || (a.resource < b.resource ? -1 : 1);
}

const RANKS = ["v2", "", "v2beta1", "v1"];

/** Formats the name of a service for a heading, such as `Groups` or `Groups (v1)`. */
export function formatTag(typeName: string): string {
  const { resource, version } = nameService(typeName);
  return version === "" || version === "v2" ? resource : `${resource} (${version})`;
}
