// How conditions on the claims of a token are written in a sentence, by the service and by the command line. The types have the
// shape of the messages of arbor.trust.v1.

/** A value that claims are compared with. */
export interface ClaimValue {
  readonly kind: { readonly case?: string | undefined; readonly value?: string | bigint | boolean | undefined };
}

/** A condition on one claim. */
export interface ClaimCondition {
  readonly path: readonly string[];
  readonly negated: boolean;
  readonly test:
    | { readonly case: "equals" | "contains"; readonly value: ClaimValue }
    | { readonly case: "oneOf"; readonly value: { readonly values: readonly ClaimValue[] } }
    | { readonly case: "prefix" | "pattern"; readonly value: string }
    | { readonly case: "exists"; readonly value: boolean }
    | { readonly case: undefined; readonly value?: undefined };
}

const PLAIN_KEY = /^[\w-]+$/;

/** Formats the path of a claim, such as `"kubernetes.io".namespace`: keys that are not plain words are in quotation marks. */
export function formatClaimPath(path: readonly string[]): string {
  return path.map((key) => (PLAIN_KEY.test(key) ? key : JSON.stringify(key))).join(".");
}

/** Formats a condition, such as `repository_id equals 123`. */
export function formatCondition({ path, negated, test }: ClaimCondition): string {
  return `${formatClaimPath(path)} ${formatTest(negated, test)}`;
}

function formatTest(negated: boolean, test: ClaimCondition["test"]): string {
  const not = (positive: string, negative: string) => (negated ? negative : positive);
  switch (test.case) {
    case "equals":
      return `${not("equals", "does not equal")} ${formatValue(test.value)}`;
    case "oneOf":
      return `${not("is one of", "is none of")} ${test.value.values.map(formatValue).join(", ")}`;
    case "prefix":
      return `${not("begins with", "does not begin with")} ${JSON.stringify(test.value)}`;
    case "pattern":
      return `${not("matches", "does not match")} ${JSON.stringify(test.value)}`;
    case "contains":
      return `${not("contains", "does not contain")} ${formatValue(test.value)}`;
    case "exists":
      return not("exists", "is missing");
    default:
      return "has a condition that this version does not know";
  }
}

// Text in quotation marks, so that "1" and 1 differ.
function formatValue({ kind }: ClaimValue): string {
  return typeof kind.value === "string" ? JSON.stringify(kind.value) : String(kind.value);
}

/** The name of a condition without its values, for logs, such as `not equals`. */
export function nameTest({ negated, test }: Pick<ClaimCondition, "negated" | "test">): string {
  return `${negated ? "not " : ""}${test.case ?? "unknown"}`;
}
