// The server on this machine that the browser comes back to after a login
// (RFC 8252, section 7.3). Any page may send a browser here, so only what knows
// the state is heard, and that once.
import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ConnectError } from "@connectrpc/connect";
import { failure } from "./failure.js";
import { codeOfStatus } from "./service.js";

const PATH = "/callback";

/** How much of what the browser says is shown, in characters. */
const MAX_TEXT = 500;

/** A server that waits for the browser. */
export interface Loopback<T> {
  /** The address that the browser shall come back to. */
  readonly redirectUri: string;
  /** What `redeem` made of the code; fails when the login did. */
  readonly result: Promise<T>;
  /** Ends the waiting with `error`. */
  fail(error: Error): void;
}

/**
 * Starts to wait on a free port of 127.0.0.1. It stops by itself when the browser has its answer.
 *
 * @param state the secret that the browser must bring back
 * @param redeem changes the code for what is wanted, while the browser waits for the answer
 */
export async function startLoopback<T>(
  state: string,
  redeem: (code: string, redirectUri: string) => Promise<T>,
): Promise<Loopback<T>> {
  let settle: { resolve: (value: T) => void; reject: (error: unknown) => void };
  const result = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  let taken = false;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = taken ? undefined : callbackIn(request, host);
    if (query === undefined) return send(response, 404, NOT_HERE);
    if (!isSame(only(query, "state"), state)) return send(response, 400, NOT_OURS);
    taken = true;
    const closed = new Promise((resolve) => response.once("close", resolve));
    const code = only(query, "code");
    let end: () => void;
    try {
      if (code === undefined) throw refusalIn(query);
      const value = await redeem(code, redirectUri);
      end = () => settle.resolve(value);
      send(response, 200, DONE);
    } catch (error) {
      end = () => settle.reject(error);
      send(response, 400, FAILED);
    }
    // The page is on its way, or nobody waits for it any more.
    await closed;
    stop();
    end();
  }
  function stop() {
    server.close();
    server.closeAllConnections();
  }

  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const redirectUri = `http://${host}${PATH}`;
  return {
    redirectUri,
    result,
    fail(error) {
      stop();
      settle.reject(error);
    },
  };
}

// Compared as sent: a name that leads here by a trick in the DNS is not ours.
function callbackIn({ method, headers, url = "" }: IncomingMessage, host: string): URLSearchParams | undefined {
  const [path, query = ""] = url.split("?", 2);
  return method === "GET" && headers.host === host && path === PATH ? new URLSearchParams(query) : undefined;
}

// No parameter may be repeated (RFC 6749, section 3.1).
function only(query: URLSearchParams, name: string): string | undefined {
  const [value, ...more] = query.getAll(name);
  return value === "" || more.length > 0 ? undefined : value;
}

function isSame(value: string | undefined, expected: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(value ?? ""), hash(expected));
}

// For a service that tells no status beside the error of RFC 6749, section 4.1.2.1.
const statuses: Readonly<Record<string, number>> = { access_denied: 403, temporarily_unavailable: 503 };

function refusalIn(query: URLSearchParams): ConnectError {
  const error = only(query, "error") ?? "the browser came back without a code";
  const status = Number(only(query, "status_code") ?? statuses[error]);
  const text = (only(query, "error_description") ?? error).slice(0, MAX_TEXT);
  return failure(codeOfStatus(status), `the login failed: ${text}`);
}

interface Page {
  readonly title: string;
  readonly text: string;
}

// Fixed texts: nothing of a request comes back in a page.
const DONE: Page = { title: "You are logged in", text: "You can close this window and go back to the terminal." };
const FAILED: Page = { title: "The login failed", text: "The terminal says why. You can close this window." };
const NOT_OURS: Page = {
  title: "Not this login",
  text: "This address belongs to another login. Go back to the terminal.",
};
const NOT_HERE: Page = { title: "Not found", text: "There is nothing at this address." };

const STYLE = "body{font:1.125rem/1.5 system-ui,sans-serif;max-width:36rem;margin:15vh auto;padding:0 1rem}";
const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

function send(response: ServerResponse, status: number, { title, text }: Page): void {
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
