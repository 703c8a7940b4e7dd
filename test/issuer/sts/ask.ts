// One request over HTTP as a test says it, and its response in the form of expectations.
import type { Expected } from "../../contract/expectations.js";
import { codeName } from "../../contract/wire.js";
import { sendHttp } from "../../support/send-http.js";

/** What is sent. */
export interface RequestOptions {
  readonly method?: string;
  readonly bearer?: string | undefined;
  /** Sent as JSON. */
  readonly json?: object;
  /** Sent as a form. */
  readonly form?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What came back. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body as JSON; empty where there is none. */
  readonly json: Readonly<Record<string, unknown>>;
  /** An error in the form of expectations, its times left out; success is its body. */
  readonly outcome: Expected;
}

/** Asks for a path. */
export async function ask(url: string, path: string, options: RequestOptions = {}): Promise<Answer> {
  const { method = "GET", bearer, json, form, headers } = options;
  const type = form === undefined ? "application/json" : "application/x-www-form-urlencoded";
  const body = form ?? (json && JSON.stringify(json));
  const response = await sendHttp(url + path, {
    method,
    headers: {
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { "content-type": type }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  });
  const { text } = response;
  const read = (text === "" ? {} : JSON.parse(text)) as Answer["json"];
  const outcome: Expected = response.ok ? { code: "OK", result: read } : errorOf(read);
  return { status: response.status, headers: response.headers, text, json: read, outcome };
}

function errorOf({ code, message, details }: Answer["json"]): Expected {
  const timeless = JSON.parse(JSON.stringify(details), (name, value) => (name === "retryDelay" ? "<delay>" : value));
  return { code: codeName(Number(code)), message: String(message), details: timeless };
}

/** A query or a form; lists repeat the name. */
export function queryOf(parameters: Readonly<Record<string, string | readonly string[]>>): string {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(parameters)) {
    for (const value of typeof values === "string" ? [values] : values) query.append(name, value);
  }
  return query.toString();
}
