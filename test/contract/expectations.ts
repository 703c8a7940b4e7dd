// What answers must be, as docs/api-rules.md#errors and #lists say, and not by
// the code under test.

/** What a call must come to, in the form clients give. */
export type Expected =
  | { readonly code: "OK"; readonly result: object }
  | { readonly code: string; readonly message: string; readonly details: readonly object[] };

/** The domain of errors of a service on 127.0.0.1 without settings. */
export const DOMAIN = "iam.127.0.0.1";

const TYPE = "type.googleapis.com/google.rpc.";

function failure(code: string, message: string, ...details: readonly object[]): Expected {
  return { code, message, details: [{ "@type": `${TYPE}ErrorInfo`, reason: code, domain: DOMAIN }, ...details] };
}

/** Success. */
export function ok(result: object): Expected {
  return { code: "OK", result };
}

/** A group as sparse JSON. */
export function group(uid: string, name: string, more: object = {}): object {
  return { uid, name, ...more, createTime: "<time>", updateTime: "<time>" };
}

/** A page of groups as sparse JSON. */
export function page(total: number, groups: readonly object[], more: object = {}): Expected {
  return ok({ ...(groups.length > 0 && { groups }), ...more, totalCount: String(total) });
}

/** The message of INVALID_ARGUMENT: descriptions without what they add for a value that is missing. */
export function invalidMessage(violations: readonly (readonly [field: string, description: string])[]): string {
  const texts = violations.map(([field, description]) => `${field}: ${description}`);
  return `Invalid argument: ${texts.map((text) => text.replace(/(?<= must match .*): \S+ is required$/, "")).join("; ")}`;
}

/** INVALID_ARGUMENT with one violation per pair of field and description. */
export function invalid(...violations: readonly (readonly [field: string, description: string])[]): Expected {
  const fieldViolations = violations.map(([field, description]) => ({ field, description }));
  return failure("INVALID_ARGUMENT", invalidMessage(violations), { "@type": `${TYPE}BadRequest`, fieldViolations });
}

/** PERMISSION_DENIED with one field and rule for each value that callers do not choose. */
export function notPermittedField(...violations: readonly (readonly [field: string, description: string])[]): Expected {
  const text = violations.map(([field, description]) => `${field}: ${description}`).join("; ");
  return failure("PERMISSION_DENIED", `Permission denied: ${text}`);
}

const byOperator = "is set by the operator alone, with `arbor admin groups verify UID";
/** The operator's fields of a group and their rules. */
export const VERIFIED = ["verified", `verified ${byOperator}\``] as const;
export const KIND = ["kind", `kind ${byOperator} --kind KIND\``] as const;

/**
 * FAILED_PRECONDITION.
 *
 * @param description of each violation
 * @param metadata that of its ErrorInfo, such as how many rows of which kinds keep a group
 */
export function precondition(
  type: string,
  description: string | readonly string[],
  metadata?: Readonly<Record<string, unknown>>,
): { readonly code: string; readonly message: string; readonly details: readonly object[] } {
  const code = "FAILED_PRECONDITION";
  const info = { "@type": `${TYPE}ErrorInfo`, reason: code, domain: DOMAIN, ...(metadata && { metadata }) };
  const descriptions = [description].flat();
  const violations = descriptions.map((one) => ({ type, description: one }));
  const details = [info, { "@type": `${TYPE}PreconditionFailure`, violations }];
  return { code, message: `Precondition failed: ${descriptions[0]}`, details };
}

/** FAILED_PRECONDITION of a group with a binding that a directory manages by a mapping. */
export const keptByDirectory: Expected = {
  code: "FAILED_PRECONDITION",
  message: "Precondition failed: cannot delete group that external group role mappings name",
  details: [
    {
      ...{ "@type": `${TYPE}ErrorInfo`, reason: "FAILED_PRECONDITION", domain: DOMAIN },
      metadata: { externalGroupRoleMappings: "1", roleBindings: "1" },
    },
    {
      "@type": `${TYPE}PreconditionFailure`,
      violations: [
        { type: "RESOURCE_IN_USE", description: "cannot delete group that external group role mappings name" },
        { type: "RESOURCE_NOT_EMPTY", description: "cannot delete group with child role bindings" },
      ],
    },
  ],
};

/** NOT_FOUND of a group. */
export function expectNotFound(uid: string, rule = `there is no group ${uid}`): Expected {
  return failure("NOT_FOUND", `Not found: group: ${rule}`, {
    "@type": `${TYPE}ResourceInfo`,
    resourceType: "iam.chainguard.dev/Group",
    ...(uid !== "" && { resourceName: uid }),
  });
}

/** PERMISSION_DENIED. */
export function permissionDenied(what: string): Expected {
  return failure("PERMISSION_DENIED", `Permission denied: ${what} (or it might not exist)`);
}

/** PERMISSION_DENIED that says who may, where nothing is concerned that might not exist. */
export function notPermitted(rule: string): Expected {
  return failure("PERMISSION_DENIED", `Permission denied: ${rule}`);
}

/** PERMISSION_DENIED for an identity that may not be assumed, or is not there; perhaps with the hint at the audience. */
export function notAssumable(uid: string, isForOthers = false): Expected {
  const hint = isForOthers ? " with a token whose aud names none of this service's audiences" : "";
  return permissionDenied(`assuming ${uid}${hint}`);
}

/** UNAUTHENTICATED. */
export function unauthenticated(hint = ""): Expected {
  return failure("UNAUTHENTICATED", `Unauthenticated: authorization: a valid bearer token is required${hint}`);
}

/** UNAUTHENTICATED for a token of the service that has expired. */
export function tokenExpired(): Expected {
  return failure("UNAUTHENTICATED", "Unauthenticated: authorization: the bearer token has expired");
}

/** The hint for a token that is for others. */
export const FOR_OTHERS = "; the token's aud names none of this service's audiences";

/** RESOURCE_EXHAUSTED that tells when to try again. */
export function resourceExhausted(what: string): Expected {
  return failure("RESOURCE_EXHAUSTED", `Resource exhausted: ${what}`, {
    "@type": `${TYPE}RetryInfo`,
    retryDelay: "<delay>",
  });
}

/** RESOURCE_EXHAUSTED by a quota, which no waiting ends. */
export function overQuota(subject: string, quota: string, description: string): Expected {
  const violations = [{ subject, description }];
  return failure("RESOURCE_EXHAUSTED", `Resource exhausted: ${quota}: ${description}`, {
    "@type": `${TYPE}QuotaFailure`,
    violations,
  });
}

/** UNIMPLEMENTED. */
export function unimplemented(what: string): Expected {
  return failure("UNIMPLEMENTED", `Unimplemented: ${what}`);
}
