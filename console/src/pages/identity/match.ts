// How an identity is assumed, in a sentence.
import type { Condition, Value } from "#gen/arbor/trust/v1/trust_pb.js";
import type { Identity } from "#gen/chainguard/platform/iam/v2/identities_pb.js";

export function describeMatch({ relationship }: Pick<Identity, "relationship">): string {
  switch (relationship.case) {
    case "claimMatch": {
      const { iss, sub, aud, claims, claimPatterns } = relationship.value;
      const texts = [
        `Tokens of ${iss.case === "issuerPattern" ? `issuers like ${iss.value}` : (iss.value ?? "no issuer")}`,
        `with the subject ${sub.case === "subjectPattern" ? `like ${sub.value}` : (sub.value ?? "")}`,
      ];
      if (aud.case !== undefined) {
        texts.push(`for the audience ${aud.case === "audiencePattern" ? `like ${aud.value}` : aud.value}`);
      }
      for (const [claim, value] of Object.entries(claims)) texts.push(`whose ${claim} is ${value}`);
      for (const [claim, pattern] of Object.entries(claimPatterns)) texts.push(`whose ${claim} is like ${pattern}`);
      return texts.join(", ");
    }
    case "staticKeys": {
      const { issuer, subject } = relationship.value;
      return `Tokens of ${issuer} with the subject ${subject}, signed with keys that are stored with the identity`;
    }
    case "awsIdentity": {
      const { awsAccount, awsArn } = relationship.value;
      const arn =
        awsArn.value === undefined ? "" : `, as ${awsArn.case === "arnPattern" ? "one like " : ""}${awsArn.value}`;
      return `Users and roles of the AWS account ${awsAccount}${arn}`;
    }
    case "servicePrincipal":
      return "A component of the service itself";
    default:
      return "Nothing: the operator uses it";
  }
}

/** Describes a condition on the claims of a token. */
export function describeCondition({ path, negated, test }: Condition): string {
  const claim = path.map((key) => (/^\w+$/.test(key) ? key : `"${key}"`)).join(".");
  const not = negated ? "not " : "";
  switch (test.case) {
    case "equals":
      return `${claim} is ${not}${formatValue(test.value)}`;
    case "oneOf":
      return `${claim} is ${not}one of ${test.value.values.map(formatValue).join(", ")}`;
    case "prefix":
      return `${claim} does ${not}begin with ${test.value}`.replace("does begin", "begins");
    case "pattern":
      return `${claim} does ${not}match ${test.value}`.replace("does match", "matches");
    case "contains":
      return `${claim} does ${not}contain ${formatValue(test.value)}`.replace("does contain", "contains");
    case "exists":
      return negated ? `${claim} is missing` : `${claim} is there`;
    default:
      return claim;
  }
}

function formatValue({ kind }: Value): string {
  return kind.case === undefined ? "" : String(kind.value);
}
