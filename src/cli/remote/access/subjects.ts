// Who may do something, as the service lists it: identities, and rules that let further people.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** A subject for people. */
export interface DescribedSubject {
  readonly kind: "identity" | "mapping" | "provider" | "invite" | "";
  readonly uid: string;
  readonly name: string;
  readonly email: string;
  readonly isUnconfirmed: boolean;
}

/** Describes a subject, given as JSON. The name of a mapping is that of the directory's group, or what the mapping has for it. */
export function describeSubject({ identity, mapping, provider, invite }: JsonObject): DescribedSubject {
  if (isMessage(identity)) return describe("identity", identity, identity.name);
  if (isMessage(mapping)) return describe("mapping", mapping, mapping.directoryGroupName || mapping.externalGroupId);
  if (isMessage(provider)) return describe("provider", provider, provider.name);
  return isMessage(invite) ? describe("invite", invite, "") : describe("", {}, "");
}

function describe(
  kind: DescribedSubject["kind"],
  { uid, email, unconfirmed }: JsonObject,
  name: JsonValue | undefined,
) {
  return { kind, uid: text(uid), name: text(name), email: text(email), isUnconfirmed: unconfirmed === true };
}

function isMessage(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null;
}

function text(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
