// Requests to `/token`, for tests.

/** What was answered. */
export interface TokenResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly token: string;
}

/** A request to `/token`, for the service `arbor` unless `parameters` name another. */
export interface TokenRequest {
  readonly parameters?: readonly (readonly [name: string, value: string])[];
  readonly user?: string;
  readonly password?: string;
  /** The complete Authorization header, in place of user and password. */
  readonly authorization?: string;
  /** Sent as a form. */
  readonly form?: Readonly<Record<string, string>>;
}

/** Asks the service at `url` for a registry token. */
export async function askToken(url: string, request: TokenRequest): Promise<TokenResponse> {
  const { parameters = [], user, password = "", authorization, form } = request;
  const basic = user === undefined ? undefined : `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  const sent = authorization ?? basic;
  const all = new URLSearchParams(parameters.some(([name]) => name === "service") ? [] : [["service", "arbor"]]);
  for (const [name, value] of [...parameters, ...Object.entries(form ?? {})]) all.append(name, value);
  const init = form === undefined ? {} : { method: "POST", body: all };
  const headers = sent === undefined ? {} : { authorization: sent };
  const response = await fetch(form === undefined ? `${url}/token?${all}` : `${url}/token`, { ...init, headers });
  const text = await response.text();
  const { token = "" } = JSON.parse(text) as { token?: string };
  return { status: response.status, headers: response.headers, text, token };
}
