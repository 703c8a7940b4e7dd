import { sendHttp } from "../support/send-http.js";
import type { Expected } from "./expectations.js";
import { codeName } from "./wire.js";

/** What a REST call got. */
export interface RestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; undefined when there is none. */
  readonly json: Readonly<Record<string, unknown>> | undefined;
  /** An error in the form of expectations; success is its body. */
  readonly outcome: Expected;
}

/** Sends a request; `path` follows the base of all of them, a body that is not a text is sent as JSON. */
export type Rest = (method: string, path: string, body?: object | string) => Promise<RestResponse>;

/** REST calls with one token; paths follow `base`. */
export function restAs(url: string, token?: string, base = "/iam/v2beta1"): Rest {
  return async (method, path, body) => {
    const response = await sendHttp(`${url}${base}${path}`, {
      method,
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const { text } = response;
    const json = text === "" ? undefined : JSON.parse(text);
    const outcome = response.ok ? { code: "OK", result: json ?? {} } : { ...json, code: codeName(json.code) };
    return { status: response.status, headers: response.headers, text, json, outcome };
  };
}
