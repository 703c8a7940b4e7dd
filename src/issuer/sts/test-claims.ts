// The handler of AccessService.TestClaims: what the token exchange would say of a token, or of the claims of one. It has
// the two halves of the exchange (exchange.ts). It issues nothing and counts no failures: its caller may change the
// identity, so guessing is of no use.
import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "@bufbuild/protobuf";
import type { TestClaimsRequest } from "#gen/arbor/access/v1/access_pb.js";
import { identities } from "../../iam/identities/identity.js";
import { relationshipFromJson } from "../../iam/identities/relationship.js";
import { aborted, type FieldViolation, invalidArgument } from "../../kernel/errors.js";
import type { Clock } from "../../kernel/time.js";
import type { TraceSpan } from "../../kernel/trace.js";
import { type PreparedHandler, withPreparation } from "../../pipeline/handlers.js";
import { getRow } from "../../pipeline/resource/read.js";
import type { IdentityRow } from "../../store/iam/identities.js";
import {
  findAudiences,
  isIssuerClaim,
  isSubjectClaim,
  MAX_AUDIENCES,
  MAX_ISSUER_LENGTH,
  MAX_SUBJECT_LENGTH,
  type ParsedToken,
  parseUpstreamToken,
  type TokenClaims,
} from "../upstream/token.js";
import { describeFailure, describeUnreadable, type Tested, type TestResult } from "./failed-condition.js";
import { decide, type IdentifyDeps, isJwt, type Proof, requireClaims, verifyBearer } from "./identify.js";

const MAX_CLAIMS_BYTES = 64 * 1024;

export interface TestClaimsDeps extends IdentifyDeps {
  readonly clock: Clock;
}

/** What is tested, after everything that needs the network was done. */
type Prepared =
  | { readonly by: "claims"; readonly claims: TokenClaims }
  | { readonly by: "result"; readonly result: TestResult }
  | { readonly by: "proof"; readonly token: ParsedToken | undefined; readonly proof: Proof }
  | {
      readonly by: "error";
      readonly token: ParsedToken | undefined;
      readonly error: unknown;
      /** The relationship before the token was verified, as it was stored. */
      readonly relationship: object;
    };

export function createTestClaims(deps: TestClaimsDeps): PreparedHandler<TestClaimsRequest, unknown, TestResult> {
  const { store, clock, audiences } = deps;

  async function prepareToken(identity: string, bearer: string, trace: TraceSpan | undefined): Promise<Prepared> {
    let token: ParsedToken | undefined;
    try {
      if (isJwt(bearer)) token = parseUpstreamToken(bearer);
    } catch (error) {
      return { by: "result", result: describeUnreadable(error) };
    }
    const { relationship } = await store.read((tx) => getRow(tx, identities, identity));
    try {
      // Without the record of the request, whose log line would have what the token says.
      const proof = await verifyBearer({ identity, identityProvider: "", trace }, bearer, clock(), deps);
      return { by: "proof", token, proof };
    } catch (error) {
      return { by: "error", token, error, relationship };
    }
  }

  function buildTested({ relationship, issuer }: IdentityRow, claims: TokenClaims | undefined): Tested {
    const [audience = ""] = audiences;
    return { relationship: relationshipFromJson(relationship), isPerson: issuer !== "", claims, audience };
  }

  return withPreparation({
    async prepare({ identity, subject }: TestClaimsRequest, { trace }): Promise<Prepared> {
      if (subject.case === "claims") return { by: "claims", claims: parseClaims(subject.value) };
      if (subject.case === "token" && subject.value !== "") return prepareToken(identity, subject.value, trace);
      throw invalidArgument({ field: "token", subject: "", rule: "set either {} or {}", args: ["token", "claims"] });
    },

    async handle({ identity }: TestClaimsRequest, { tx }, prepared: Prepared): Promise<TestResult> {
      const row = await getRow(tx, identities, identity);
      if (prepared.by === "result") return prepared.result;
      const tested = buildTested(row, prepared.by === "claims" ? prepared.claims : prepared.token);
      if (prepared.by === "error") {
        // The error is about the relationship of before, and the result would describe another one.
        if (!isDeepStrictEqual(row.relationship, prepared.relationship)) {
          throw aborted("the identity was changed while the token was verified, try again");
        }
        return describeFailure(prepared.error, tested);
      }
      try {
        if (prepared.by === "claims") await requireClaims(tx, prepared.claims, identity, deps);
        else await decide(tx, prepared.proof, clock(), deps);
      } catch (error) {
        return describeFailure(error, tested);
      }
      return { accepted: true };
    },
  });
}

/**
 * Reads the claims of a token as the exchange reads them.
 *
 * @throws ApiError INVALID_ARGUMENT naming each invalid claim
 */
function parseClaims(claims: JsonObject): TokenClaims {
  if (Buffer.byteLength(JSON.stringify(claims)) > MAX_CLAIMS_BYTES)
    throw invalidArgument({ field: "claims", rule: "must be at most 64 KiB" });
  const [iss, sub, aud] = ["iss", "sub", "aud"].map((name) => (Object.hasOwn(claims, name) ? claims[name] : undefined));
  const violations: FieldViolation[] = [];
  const textRule = (max: number) => `must be a text of 1 to ${max} characters`;
  if (!isIssuerClaim(iss)) violations.push({ field: "claims.iss", rule: textRule(MAX_ISSUER_LENGTH) });
  if (!isSubjectClaim(sub)) violations.push({ field: "claims.sub", rule: textRule(MAX_SUBJECT_LENGTH) });
  const audiences = findAudiences(aud);
  if (audiences === undefined) {
    violations.push({ field: "claims.aud", rule: `must be a text, or a list of 1 to ${MAX_AUDIENCES} texts` });
  }
  if (!isIssuerClaim(iss) || !isSubjectClaim(sub) || audiences === undefined) throw invalidArgument(...violations);
  return { issuer: iss, subject: sub, audiences, claims };
}
