// AccessService.TestClaims over REST; and through the pipeline alone, on the store of a running service and with
// dependencies that a test changes.
import { create, fromJson, type JsonObject, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { AccessService, TestClaimsRequestSchema, TestClaimsResponseSchema } from "#gen/arbor/access/v1/access_pb.js";
import { isOwnUrl } from "../../../src/issuer/sts/audience.js";
import { createTestClaims, type TestClaimsDeps } from "../../../src/issuer/sts/test-claims.js";
import { createIssuers } from "../../../src/issuer/upstream/issuers.js";
import { createGuardedFetch } from "../../../src/outbound/guarded-fetch.js";
import { UnaryCall } from "../../../src/pipeline/call.js";
import { createInvoke } from "../../../src/pipeline/invoke.js";
import { createMethodTable } from "../../../src/pipeline/method-table.js";
import { restAs } from "../../contract/rest.js";
import { codeName } from "../../contract/wire.js";
import { inboundOf, principal } from "../../pipeline/pipeline.js";
import type { ExchangeWorld } from "./exchange-world.js";

/** What is tested. */
export type Subject = MessageInitShape<typeof TestClaimsRequestSchema>["subject"];

/** The response as JSON without empty fields, or the code and the text of the error. */
export type Tested = Readonly<Record<string, unknown>>;

/** Tests a token or claims. */
export type TestClaims = (identity: string, subject: Subject) => Promise<Tested>;

/** Tests over REST, with the API token of `caller`. */
export function testOverRest({ url, owner }: ExchangeWorld, caller = owner.token): TestClaims {
  const rest = restAs(url, caller, "/access/v1/identities");
  return async (identity, subject) => {
    const { status, json = {} } = await rest("POST", `/${identity}:testClaims`, subjectToJson(subject));
    if (status !== 200) return { code: codeName(Number(json.code)), message: json.message };
    return toJson(TestClaimsResponseSchema, fromJson(TestClaimsResponseSchema, json as JsonObject)) as Tested;
  };
}

function subjectToJson(subject: Subject): object {
  return toJson(TestClaimsRequestSchema, create(TestClaimsRequestSchema, subject && { subject })) as object;
}

/** The longest life of tokens: that of the setting's default, in seconds. */
const MAX_LIFE_S = 25 * 3600;

/**
 * Creates what tests through the pipeline, as the owner of the organisation.
 *
 * @param stsOrigins those of a server that stands in for AWS
 * @param change what differs from the service
 */
export function createClaimsTester(
  world: ExchangeWorld,
  stsOrigins: readonly string[] = [],
  change: (deps: TestClaimsDeps) => Partial<TestClaimsDeps> = () => ({}),
): TestClaims {
  const { store } = world.harness.app.installation;
  const clock = () => Date.now() + world.harness.skewMs;
  const ownUrls = [world.url];
  const fetch = createGuardedFetch({ trustedOrigins: [world.workloads.issuer, world.people.issuer, ...stsOrigins] });
  const maxTokenLifeS = MAX_LIFE_S;
  const issuers = createIssuers({ fetch, clock, maxTokenLifeS, isOwnIssuer: (issuer) => isOwnUrl(issuer, ownUrls) });
  const deps: TestClaimsDeps = {
    ...{ store, clock, fetch, issuers, stsOrigins, ownUrls, audiences: ownUrls, loginProviders: [], maxTokenLifeS },
  };
  const handler = createTestClaims({ ...deps, ...change(deps) });
  const method = AccessService.method.testClaims;
  const desc = { ...AccessService, methods: [method] };
  const entry = createMethodTable([{ desc, handlers: { testClaims: handler } }])
    .values()
    .next().value;
  if (entry?.kind !== "unary") throw new TypeError("the method is not unary");
  const onInternalError = (error: unknown) => {
    throw error;
  };
  const invoke = createInvoke({ store, clock, errorDomain: "iam.test", onInternalError });
  return async (identity, subject) => {
    const call = new UnaryCall(inboundOf({}), method, clock());
    const request = create(TestClaimsRequestSchema, { identity, ...(subject && { subject }) });
    try {
      const response = await invoke(entry, call, { ...principal(world.owner.uid), issuedAt: clock() / 1000 }, request);
      return toJson(TestClaimsResponseSchema, create(TestClaimsResponseSchema, response)) as Tested;
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return { code: codeName(error.code), message: error.rawMessage };
    }
  };
}
