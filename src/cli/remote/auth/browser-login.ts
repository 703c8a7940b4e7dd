// Login with a browser on the same machine: an authorization code with PKCE (RFC 7636) and a redirect to a loopback
// address (RFC 8252, section 7.3). Any page may redirect a browser there, so the server accepts only one request with
// the right state.
import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { sha256 } from "../../../kernel/digest.js";
import { CLI_CLIENT_ID } from "../../../kernel/web.js";
import { Code, CommandError } from "../../errors.js";
import { toCode } from "../service.js";
import type { StoredLogin } from "./credentials-file.js";
import { buildLimitParameters, buildLoginParameters, type LoginOptions, redeemCode } from "./grants.js";

const CALLBACK_PATH = "/callback";

/** Before the secret of the page that leads to the service. */
const START_PATH = "/login/";

/** How much of the query an error repeats, in characters. */
const MAX_TEXT = 500;

/**
 * Logs in.
 *
 * @param show opens the page, or asks the person to open it. The address of the page never has the code of an invite, which
 * would stay in the terminal and in its records: with an invite it is one of this process, which ends with the login
 * @param waitMs how long the person may take, in milliseconds
 * @throws CommandError DEADLINE_EXCEEDED when they take longer, or the error of the service
 */
export async function logInWithBrowser(
  api: string,
  loginRequest: LoginOptions,
  show: (url: string) => Promise<void>,
  waitMs: number,
): Promise<StoredLogin> {
  const verifier = randomBytes(32).toString("base64url");
  const state = randomBytes(32).toString("base64url");
  let page = "";
  const loopback = await startLoopback(
    state,
    () => page,
    (code, redirectUri) => redeemCode(api, { code, verifier, redirectUri }),
  );
  const query = new URLSearchParams({
    response_type: "code",
    client_id: CLI_CLIENT_ID,
    redirect_uri: loopback.redirectUri,
    code_challenge: sha256(verifier).toString("base64url"),
    code_challenge_method: "S256",
    state,
    audience: api,
    create_refresh_token: "true",
  });
  for (const [name, value] of [...buildLoginParameters(loginRequest), ...buildLimitParameters(loginRequest, "scope")])
    query.append(name, value);
  page = `${api}/oauth?${query}`;
  const timeout = new CommandError(
    Code.DeadlineExceeded,
    `the browser did not come back within ${waitMs / 60_000} minutes`,
  );
  const timer = setTimeout(() => loopback.fail(timeout), waitMs);
  try {
    // Concurrently, because the redirect may arrive before the program that opened the browser ends.
    const [login] = await Promise.all([
      loopback.result,
      show(loginRequest.invite === undefined ? page : loopback.startUrl),
    ]);
    return login;
  } catch (error) {
    loopback.fail(timeout);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** A server that waits for the redirect. */
interface Loopback<T> {
  /** The URL to which the service redirects the browser. */
  readonly redirectUri: string;
  /** A URL that leads to the page of the service. Other users of the machine cannot guess it. */
  readonly startUrl: string;
  /** The result of `redeem`; rejected when the login fails. */
  readonly result: Promise<T>;
  /** Stops the server and rejects the result. */
  fail(error: Error): void;
}

/**
 * Starts the server on a free port of 127.0.0.1. It stops when the browser has its response.
 *
 * @param state the secret that the redirect must contain
 * @param findPage returns the address of the page of the service
 * @param redeem redeems the code while the browser waits for the response
 */
async function startLoopback<T>(
  state: string,
  findPage: () => string,
  redeem: (code: string, redirectUri: string) => Promise<T>,
): Promise<Loopback<T>> {
  let outcome: { resolve: (value: T) => void; reject: (error: unknown) => void };
  const result = new Promise<T>((resolve, reject) => {
    outcome = { resolve, reject };
  });
  let isUsed = false;

  const startPath = `${START_PATH}${randomBytes(32).toString("base64url")}`;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const found = isUsed ? undefined : parsePath(request, host);
    if (isSame(found?.path, startPath)) return sendRedirect(response, findPage());
    const query = found?.path === CALLBACK_PATH ? found.query : undefined;
    if (query === undefined) return sendPage(response, 404, NOT_FOUND);
    if (!isSame(findSingleValue(query, "state"), state)) return sendPage(response, 400, OTHER_LOGIN);
    isUsed = true;
    const closed = new Promise((resolve) => response.once("close", resolve));
    const code = findSingleValue(query, "code");
    let end: () => void;
    try {
      if (code === undefined) throw toCallbackError(query);
      const value = await redeem(code, redirectUri);
      end = () => outcome.resolve(value);
      sendPage(response, 200, DONE);
    } catch (error) {
      end = () => outcome.reject(error);
      sendPage(response, 400, FAILED);
    }
    // The browser has received the page or closed the connection.
    await closed;
    stop();
    end();
  }
  function stop() {
    server.close();
    server.closeAllConnections();
  }

  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redirectUri = `http://${host}${CALLBACK_PATH}`;
  return {
    redirectUri,
    startUrl: `http://${host}${startPath}`,
    result,
    fail(error) {
      stop();
      outcome.reject(error);
    },
  };
}

// The host header is compared as sent, because another name may resolve to this address (DNS rebinding).
function parsePath({ method, headers, url = "" }: IncomingMessage, host: string) {
  const [path = "", query = ""] = url.split("?", 2);
  return method === "GET" && headers.host === host ? { path, query: new URLSearchParams(query) } : undefined;
}

// No parameter may be repeated (RFC 6749, section 3.1).
function findSingleValue(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name);
  return value === "" || more.length > 0 ? undefined : value;
}

function isSame(value: string | undefined, expected: string): boolean {
  return timingSafeEqual(sha256(value ?? ""), sha256(expected));
}

// The HTTP status of an error of RFC 6749, section 4.1.2.1, which has none.
const statuses: Readonly<Record<string, number>> = { access_denied: 403, temporarily_unavailable: 503 };

function toCallbackError(query: URLSearchParams): CommandError {
  const error = findSingleValue(query, "error") ?? "the browser came back without a code";
  const status = Number(findSingleValue(query, "status_code") ?? statuses[error]);
  const text = (findSingleValue(query, "error_description") ?? error).slice(0, MAX_TEXT);
  return new CommandError(toCode(status), `the login failed: ${text}`);
}

interface ResultPage {
  readonly title: string;
  readonly text: string;
}

// Fixed texts: a page repeats nothing of the request.
const DONE: ResultPage = { title: "You are logged in", text: "You can close this window and go back to the terminal." };
const FAILED: ResultPage = { title: "The login failed", text: "The terminal says why. You can close this window." };
const OTHER_LOGIN: ResultPage = {
  title: "Not this login",
  text: "This address belongs to another login. Go back to the terminal.",
};
const NOT_FOUND: ResultPage = { title: "Not found", text: "There is nothing at this address." };

const STYLE = "body{font:1.125rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}";
const STYLE_HASH = sha256(STYLE).toString("base64");

function sendRedirect(response: ServerResponse, location: string): void {
  response.writeHead(302, {
    location,
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    connection: "close",
  });
  response.end();
}

function sendPage(response: ServerResponse, status: number, { title, text }: ResultPage): void {
  const body = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${title} - Arbor</title>
    <style>${STYLE}</style>
  </head>
  <body>
    <main>
      <h1>${title}</h1>
      <p>${text}</p>
    </main>
  </body>
</html>
`;
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    connection: "close",
  });
  response.end(body);
}
