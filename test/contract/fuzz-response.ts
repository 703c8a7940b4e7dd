// What must hold for every response, whatever the request was.
import type { IncomingHttpHeaders } from "node:http";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { DescMessage } from "@bufbuild/protobuf";
import { spellFieldPath } from "../../src/pipeline/field-names.js";
import type { PlacedOperation, Validate } from "../support/openapi/document.js";
import type { FuzzRequest } from "./fuzz-request.js";
import type { FuzzWorld } from "./fuzz-world.js";
import { findMethod, findUnservedStatus } from "./served.js";

/** A response as it came. */
export interface FuzzResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

/** What a response tells. */
export interface Verdict {
  /** What is wrong with it, if anything is. */
  readonly fault: string | undefined;
  /** Whether a handler made it: success, or an error that only handlers give. */
  readonly reached: boolean;
  /** Of a success: what was answered. */
  readonly answer: unknown;
}

/** Judges a response. */
export type Judge = (request: FuzzRequest, response: FuzzResponse) => Verdict;

interface Candidate {
  readonly method: string;
  readonly matches: RegExp;
  readonly validate: Validate | undefined;
  readonly isServed: boolean;
  readonly input: DescMessage | undefined;
}

interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

// Traces, paths of files, and words of databases and their drivers.
const LEAKS =
  /\n\s+at |node_modules|\.[tj]s:\d+|\/tmp\/|\/home\/|\/src\/|SQLITE|sqlite|SELECT |INSERT |UPDATE |DELETE FROM|ECONN|TypeError|RangeError|undefined is not|Cannot read/;

// The HTTP statuses that go with each code; the first follows from the code alone (google.rpc.Code).
const STATUSES: Readonly<Record<number, readonly number[]>> = {
  3: [400, 408, 413, 415, 431],
  4: [504],
  5: [404],
  6: [409],
  7: [403],
  8: [429, 413],
  9: [400],
  10: [409],
  12: [405, 415],
  16: [401],
};

// What errors name that is no field: the body as a whole, parameters that no field takes, and members of JSON that are
// rejected before they are compared with fields.
const NO_FIELD = [
  /^body: /,
  / is not a (?:parameter of this method|field of this request)/,
  / (?:is given twice|is not allowed as a name|must not nest deeper|must be a number that a double can hold)/,
  / must not hold (?:half a surrogate pair|U\+0000)/,
];

// Served beside the API, in forms of their own: pages, and methods of RPC, whose paths are of two
// segments with a dot in the first.
const BESIDE =
  /^\/(?:$|(?:docs|openapi\.json|healthz|readyz|metrics|\.well-known|oauth|token|registry\/notifications)\b|[^/]+\.[^/]*\/[^/]+$)/;

/** Makes the judge of a service. */
export function createJudge({ operations, validators }: Pick<FuzzWorld, "operations" | "validators">): Judge {
  const candidates = operations.map((operation) => candidateOf(operation));
  const domain = `"domain":"iam.127.0.0.1"`;

  function candidateOf(operation: PlacedOperation): Candidate {
    const parts = operation.path.split(/\{[^}]+\}/).map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const schema = operation.responses["200"]?.content?.["application/json"]?.schema;
    return {
      method: operation.method,
      matches: new RegExp(`^${parts.join(".+")}$`),
      validate: schema === undefined ? undefined : validators.of(schema),
      isServed: findUnservedStatus(operation) !== 501,
      input: findMethod(operation)?.input,
    };
  }

  function fittingOf(request: FuzzRequest): Candidate[] {
    const method = request.method === "HEAD" ? "GET" : request.method;
    const path = decodePath(request.path.split("?")[0] ?? "");
    return candidates.filter((one) => one.method === method && one.matches.test(path));
  }

  function successFault(request: FuzzRequest, response: unknown, text: string): string | undefined {
    const fitting = fittingOf(request);
    if (fitting.length === 0) return "success of something that the document does not speak of";
    if (request.method === "HEAD") return text === "" ? undefined : "a body for HEAD";
    const faults = fitting.map(({ validate }) =>
      validate === undefined ? (text === "" ? undefined : "a body") : validate(response),
    );
    return faults.includes(undefined) ? undefined : faults.join(" / ");
  }

  // Errors name fields of the request, by their paths in JSON.
  function fieldFault(request: FuzzRequest, response: unknown): string | undefined {
    const { details = [] } = response as { details?: readonly { fieldViolations?: readonly FieldViolation[] }[] };
    const fitting = fittingOf(request);
    if (fitting.length === 0) return undefined;
    const unknown = details
      .flatMap(({ fieldViolations = [] }) => fieldViolations)
      .filter(({ field, description }) => !NO_FIELD.some((rule) => rule.test(`${field}: ${description}`)))
      .find(({ field }) => !fitting.some(({ input }) => input && spellFieldPath(input, field, "json") === field));
    return unknown && `an error about ${unknown.field}, which is no field of the request`;
  }

  return (request, { status, headers, bytes }) => {
    const path = request.path.split("?")[0] ?? "";
    if (BESIDE.test(path))
      return { fault: status >= 500 ? `status ${status}` : undefined, reached: false, answer: undefined };
    if (headers["grpc-status"] !== undefined) return { fault: undefined, reached: false, answer: undefined };
    const text = textOf(bytes, headers["content-encoding"]);
    if (LEAKS.test(text)) return { fault: "tells of the inside", reached: false, answer: undefined };
    if (isEchoed(request.headers.authorization, text))
      return { fault: "echoes the credential", reached: false, answer: undefined };
    if (path.startsWith("/sts/") && status === 200 && headers["cache-control"] !== "no-store") {
      return { fault: "a credential that may be kept", reached: false, answer: undefined };
    }
    if (headers["x-content-type-options"] !== "nosniff" && ![204, 400, 408, 431].includes(status)) {
      return { fault: "no x-content-type-options", reached: false, answer: undefined };
    }
    if (status === 204) {
      const fault = request.method === "OPTIONS" && text === "" ? undefined : "204";
      return { fault, reached: false, answer: undefined };
    }
    const answer = text === "" ? undefined : parseJson(text);
    if (text !== "" && answer === undefined) return { fault: "no JSON", reached: false, answer };
    if (status === 200) {
      const fault = successFault(request, answer, text);
      return { fault, reached: fault === undefined, answer };
    }
    const isUnserved = status === 501 && fittingOf(request).some((one) => !one.isServed);
    if (request.method === "HEAD")
      return {
        fault: text === "" && (status < 500 || isUnserved) ? undefined : `HEAD ${status}`,
        reached: false,
        answer,
      };
    const { code = 0 } = (answer ?? {}) as { code?: number };
    const fault =
      validators.error(answer) ??
      (STATUSES[code]?.includes(status) || (isUnserved && code === 12)
        ? undefined
        : `status ${status} for code ${code}`) ??
      (text.includes(domain) ? undefined : "another domain") ??
      fieldFault(request, answer);
    return { fault, reached: isUnserved || isHandlers(code, text), answer };
  };

  // Only handlers know whether a thing is there and what state it is in.
  function isHandlers(code: number, text: string): boolean {
    return (
      code === 6 ||
      code === 9 ||
      code === 10 ||
      (code === 5 && text.includes("ResourceInfo")) ||
      (code === 8 && text.includes("RetryInfo"))
    );
  }
}

// Short ones could be words of any response.
function isEchoed(authorization: string | undefined, text: string): boolean {
  const credential = authorization?.slice("Bearer ".length) ?? "";
  return credential.length > 20 && text.includes(credential);
}

function textOf(bytes: Buffer, encoding: string | undefined): string {
  if (encoding === "gzip") return gunzipSync(bytes).toString();
  if (encoding === "br") return brotliDecompressSync(bytes).toString();
  return bytes.toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
