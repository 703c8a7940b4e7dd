// The request of a number: chance alone decides what it is, and it is the same for both services but for what each of them
// chose itself.
import type { JsonValue } from "@bufbuild/protobuf";
import type { FuzzWorld, KnownThings } from "../../contract/fuzz-world.js";
import { type ApiDocument, endingOperationsOf, type PlacedOperation } from "../../support/openapi/document.js";
import { createRandom, type Random } from "../../support/openapi/random.js";
import { collectionOf, queryPart, withQuery } from "../../support/openapi/request.js";
import { subjectCreatedBy } from "../../support/openapi/subject.js";
import type { WireRequest } from "./exchange.js";
import {
  envelopeRequest,
  oddHttp1Request,
  oddHttp2Request,
  pageRequest,
  preflightRequest,
  restRequest,
} from "./rest-requests.js";
import { rpcRequest, unaryCase } from "./rpc-requests.js";
import { BASE_URL } from "./side.js";
import { mountedCase, streamCase } from "./stream-cases.js";
import type { Contents, Issuers } from "./world.js";

/** What chance chose for a number. */
export interface Plan {
  /** The operation of the document; undefined for what is none. */
  readonly operation: PlacedOperation | undefined;
  build(contents: Contents): WireRequest;
}

/** Plans requests. */
export interface Planner {
  plan(number: number): Plan;
}

/** How often each operation that makes things comes first of all. */
const FIRST_OF_EACH = 6;
/** Streams that have no end, and methods whose responses say how far something in the background is. */
const LEFT_OUT = /_(?:GetChain|ListChainEntries|GetState|ListDeliveries|Test|Redeliver|Suspend|Resume)(?:_\d+)?$/;

export interface PlannerOptions {
  readonly seed: number;
  /** The document of one of the services. */
  readonly document: ApiDocument;
  readonly issuers: Issuers;
  /** Whether the services have the service that a program mounts. */
  readonly mounts: boolean;
}

/** Creates the planner of a pair of services. */
export function createPlanner({ seed, document, issuers, mounts }: PlannerOptions): Planner {
  const operations = endingOperationsOf(document).filter(({ operationId }) => !LEFT_OUT.test(operationId));
  const creates = operations.filter((one) => subjectCreatedBy(one) !== undefined);
  const first = Array.from({ length: FIRST_OF_EACH }, () => creates).flat();

  function worldOf(contents: Contents): FuzzWorld {
    const { organisation, foreign, repo, provider, identity, tokens, people, known } = contents;
    const { owner, viewer, nobody, stranger } = tokens;
    return {
      ...{ url: BASE_URL, document, operations, organisation, foreign, repo, owner, people, known },
      others: [viewer, nobody, stranger],
      somebody: {
        ...{ person: "", identity, provider },
        oidcToken: (claims: object) => issuers.token({ sub: "ci", ...claims }),
      },
      // Nothing here judges responses or stops the service.
    } as unknown as FuzzWorld;
  }

  function choose(random: Random): PlacedOperation {
    const operation = random.pick(operations);
    return operation.method === "DELETE" && random.chance(0.7) ? choose(random) : operation;
  }

  return {
    plan(number) {
      const seeded = seed + Math.imul(number, 0x9e3779b9);
      const random = createRandom(seeded);
      const operation = mounts ? undefined : first[number];
      if (operation !== undefined)
        return {
          operation,
          build: (contents) =>
            withAddress(restRequest(worldOf(contents), operation, contents.tokens, createRandom(seeded)), number),
        };
      const kind = random.int(1000);
      const chosen = choose(random);
      const next = random.int(2 ** 31);
      const build = (contents: Contents): WireRequest => {
        const own = createRandom(next);
        const { tokens } = contents;
        if (mounts && kind < 850) return rpcRequest(mountedCase(contents, own), tokens, own);
        if (kind < 320) return restRequest(worldOf(contents), chosen, tokens, own);
        if (kind < 700) return rpcRequest(unaryCase(worldOf(contents), chosen, own), tokens, own);
        if (kind < 790) return rpcRequest(streamCase(contents, own), tokens, own);
        if (kind < 860) return envelopeRequest(contents, own);
        if (kind < 900) return pageRequest((path) => contents.known.pick(`etag of ${path}`, own), own);
        if (kind < 915) return preflightRequest(chosen, own);
        if (kind < 960) return oddHttp2Request(contents, own);
        return oddHttp1Request(contents, number, own);
      };
      return {
        operation: kind < 700 && !mounts ? chosen : undefined,
        build: (contents) => withAddress(build(contents), number),
      };
    },
  };
}

// Failures are counted by address, so each request has one of its own.
function withAddress(request: WireRequest, number: number): WireRequest {
  const address = `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`;
  const fields = request.fields.map(([name, value]) =>
    name === "x-forwarded-for" && value.startsWith("10.") ? ([name, address] as const) : ([name, value] as const),
  );
  return { ...request, fields };
}

/** What later requests may speak of. */
interface Learnt {
  readonly uid?: string;
  readonly id?: string;
  readonly code?: string;
  readonly nextPageToken?: string;
}

/** Remembers what a success has made, for later requests. */
export function learn(
  known: KnownThings,
  operation: PlacedOperation,
  request: WireRequest,
  result: JsonValue,
  seed: number,
): void {
  const random = createRandom(seed);
  const { uid, id = uid, nextPageToken, code } = (typeof result === "object" ? (result ?? {}) : {}) as Learnt;
  const made = subjectCreatedBy(operation);
  const collection = collectionOf(operation);
  // Some groups stay empty, as only those can be deleted.
  const kept = made === "groups" && random.chance(0.3) ? "emptyGroups" : made;
  if (kept !== undefined && typeof id === "string") known.add(kept, id, random);
  if (typeof code === "string" && collection === "groupInvites") known.add("inviteCodes", code, random);
  if (
    typeof nextPageToken === "string" &&
    request.path.startsWith("/") &&
    request.method === "GET" &&
    request.rpc === undefined
  ) {
    const [path = "", query = ""] = request.path.split("?");
    const parts = query.split("&").filter((part) => part !== "" && !part.startsWith("page_token="));
    known.add(operation.operationId, withQuery(path, [...parts, queryPart("page_token", nextPageToken)]), random);
  }
}
