import { NamedKind, type NamedResource } from "#gen/arbor/access/v1/access_pb.js";

export function hrefOfFound({ kind, uid }: NamedResource): string {
  return kind === NamedKind.IDENTITY ? `/identities/${uid}` : `/groups/${uid}`;
}

export function describeFound({ kind, group }: NamedResource): string {
  return `${NamedKind[kind].toLowerCase()} in ${group}`;
}
