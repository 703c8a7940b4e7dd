// The issuer guard of an organisation: which issuers its identities may trust. It is part of the row of the root group, and is
// read in the transaction that decides, so that a change takes effect with the next token.
import { create, fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { type AllowedIssuer, type IssuerGuard, IssuerGuardSchema } from "#gen/arbor/trust/v1/trust_pb.js";
import { type BrokenRule, breakRule, failedPrecondition } from "../../kernel/errors.js";
import { findConditionProgramsFault, findIssuersFault } from "../../kernel/trust-rules.js";
import { rootOf } from "../../kernel/uidp.js";
import { type GroupRow, groupKind } from "../../store/iam/groups.js";
import type { Tx } from "../../store/transaction.js";
import { findConditionsFault } from "../identities/conditions.js";
import type { Relationship } from "../identities/relationship.js";

const MAX_BYTES = 16 * 1024;

/** Converts a guard to what is stored: the JSON of its message. */
export function guardToJson(guard: IssuerGuard): object {
  return toJson(IssuerGuardSchema, create(IssuerGuardSchema, { ...guard, group: "" })) as JsonObject;
}

/** Reads the guard of a root group; undefined where it has none. */
export function guardFromRow({ uid, issuerGuard }: Pick<GroupRow, "uid" | "issuerGuard">): IssuerGuard | undefined {
  if (Object.keys(issuerGuard).length === 0) return undefined;
  const stored = fromJson(IssuerGuardSchema, issuerGuard as JsonObject, { ignoreUnknownFields: true });
  return create(IssuerGuardSchema, { ...stored, group: uid });
}

/** Reads the guard that applies to an identity or a group; undefined without one. */
export async function findIssuerGuard(tx: Tx, uid: string): Promise<IssuerGuard | undefined> {
  const root = await tx.table(groupKind).find(rootOf(uid));
  return root && guardFromRow(root);
}

/** A guard with what it says where a field is not set, so that a stored guard is never empty. */
export function completeGuard({ issuers, staticKeys, aws, servicePrincipals }: IssuerGuard): IssuerGuard {
  return create(IssuerGuardSchema, {
    issuers,
    staticKeys: staticKeys ?? true,
    aws: aws ?? true,
    servicePrincipals: servicePrincipals ?? true,
  });
}

/** Finds the rule that a guard breaks; undefined for a valid one. */
export function findGuardFault(guard: IssuerGuard, field: string): BrokenRule | undefined {
  return (
    findIssuersFault(guard.issuers, `${field}.issuers`, findConditionsFault) ??
    (Buffer.byteLength(JSON.stringify(guardToJson(guard))) > MAX_BYTES
      ? breakRule(field, "must be at most 16 KiB in all")
      : findConditionProgramsFault(
          guard.issuers.flatMap(({ conditions }) => conditions),
          field,
        ))
  );
}

function originOf(issuer: string): string | undefined {
  return URL.canParse(issuer) ? new URL(issuer).origin : undefined;
}

/** Finds the entries of a guard that name an issuer: none for one that is not allowed. */
export function findAllowing({ issuers }: IssuerGuard, issuer: string): readonly AllowedIssuer[] {
  const origin = originOf(issuer);
  return issuers.filter(({ allowed }) => {
    if (allowed.case === "issuer") return allowed.value === issuer;
    return allowed.case === "origin" && allowed.value === origin;
  });
}

/** Why a guard shuts an identity out. */
export type ShutOut = "issuer" | "issuerPattern" | "relationship";

/** Finds why a guard shuts an identity with this relationship out; undefined where it does not. */
export function findShutOut(guard: IssuerGuard, relationship: Relationship): ShutOut | undefined {
  switch (relationship.case) {
    case "claimMatch": {
      const { iss } = relationship.value;
      if (iss.case === "issuerPattern") return "issuerPattern";
      return findAllowing(guard, iss.value ?? "").length > 0 ? undefined : "issuer";
    }
    case "staticKeys":
      return guard.staticKeys === false ? "relationship" : undefined;
    case "awsIdentity":
      return guard.aws === false ? "relationship" : undefined;
    case "servicePrincipal":
      return guard.servicePrincipals === false ? "relationship" : undefined;
    default:
      return undefined;
  }
}

/**
 * Requires that the guard of the organisation does not shut out an identity that is created, or whose relationship changes.
 *
 * @param uid a uid in the organisation
 * @throws ApiError FAILED_PRECONDITION
 */
export async function requireGuardAllows(tx: Tx, uid: string, relationship: Relationship): Promise<void> {
  const guard = await findIssuerGuard(tx, uid);
  const shutOut = guard && findShutOut(guard, relationship);
  if (shutOut === undefined) return;
  throw failedPrecondition("ISSUER_GUARD", `the issuer guard of the organisation ${explain(shutOut, relationship)}`);
}

function explain(shutOut: ShutOut, relationship: Relationship): string {
  if (shutOut === "issuerPattern") return "allows no pattern of issuers: name the issuer";
  if (shutOut === "relationship") return `does not allow identities with ${relationship.case}`;
  const issuer = relationship.case === "claimMatch" ? relationship.value.iss.value : "";
  return `does not allow the issuer ${issuer}`;
}
