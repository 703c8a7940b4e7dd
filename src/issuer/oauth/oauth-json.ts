// What programs send to and get from the endpoints of OAuth 2.0.
import { invalidArgument } from "../../kernel/errors.js";
import type { WebAnswer, WebRequest } from "../../kernel/web.js";
import { type Failure, failureOf, isFailure } from "./failure.js";

/** An answer in JSON that nobody may keep (RFC 6749, section 5.1). */
export function oauthJson(status: number, body: object, headers: Readonly<Record<string, string>> = {}): WebAnswer {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store", pragma: "no-cache", ...headers },
    body: JSON.stringify(body),
  };
}

/**
 * Answers a request that is a form. Failures, returned or thrown, are answered as RFC 6749, section
 * 5.2, has it; anything else that is thrown is not ours to tell of.
 */
export async function withForm(
  request: WebRequest,
  work: (form: URLSearchParams) => Promise<WebAnswer | Failure>,
): Promise<WebAnswer> {
  try {
    const [type = ""] = (request.header("content-type") ?? "").split(";");
    if (type.trim().toLowerCase() !== "application/x-www-form-urlencoded") {
      throw invalidArgument({ field: "content-type", description: "the body must be a form" });
    }
    const answer = await work(await request.form());
    return isFailure(answer) ? failureJson(answer) : answer;
  } catch (error) {
    const found = failureOf(error);
    if (found === undefined) throw error;
    return failureJson(found);
  }
}

function failureJson({ error, description, status, retryAfterS }: Failure): WebAnswer {
  const headers = retryAfterS === undefined ? undefined : { "retry-after": String(retryAfterS) };
  return oauthJson(status, { error, error_description: description }, headers);
}
