// The OpenID Provider of the demo. Who somebody is, they say themselves, so it
// listens on this machine alone.
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";
import type { Provider } from "oidc-provider";
import type { WebAnswer } from "../../../kernel/web.js";
import { peoplePage, wrongPage } from "./pages.js";
import { people } from "./people.js";
import { KEY_ID, loadProviderMaker } from "./provider-maker.js";

const HOST = "127.0.0.1";

/** A running provider. */
export interface DemoProvider {
  readonly issuer: string;
  readonly port: number;
  /** Lets one client sign people in; before, there is none. */
  serve(clientId: string, redirectUri: string): void;
  /** A token it signs, with claims besides `iss`, `iat` and `exp`. */
  sign(claims: { readonly sub: string; readonly aud: string }, lifeS: number): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Starts one.
 *
 * @param port 0 for any that is free
 * @throws Error when the port is taken
 */
export async function startDemoProvider(port: number): Promise<DemoProvider> {
  const makeProvider = await loadProviderMaker();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  let provider: Provider | undefined;
  const server = createServer((req, res) => {
    answer(req, res).catch((error: unknown) => {
      if (!res.headersSent) send(res, wrongPage(host, 400, wordsOf(error)));
    });
  });
  server.listen(port, HOST);
  await once(server, "listening");
  const host = `${HOST}:${(server.address() as AddressInfo).port}`;
  const issuer = `http://${host}`;

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(req.url ?? "/", issuer);
    // A name that leads here by a trick in the DNS is not ours.
    if (req.headers.host !== host) return send(res, wrongPage(host, 421, `This is ${host} and nothing else.`));
    if (provider === undefined) return send(res, wrongPage(host, 503, "The demo has not begun yet."));
    if (pathname.startsWith("/interaction/")) return interact(provider, searchParams.get("person"), req, res);
    // Nobody stays signed in: who it is, is asked each time.
    req.headers.cookie = cookiesWithout("_session", req.headers.cookie);
    await provider.callback()(req, res);
  }

  async function interact(signingIn: Provider, subject: string | null, req: IncomingMessage, res: ServerResponse) {
    // Fails where no login is under way in this browser.
    await signingIn.interactionDetails(req, res);
    if (subject === null) return send(res, peoplePage(host));
    const person = people.find((one) => one.subject === subject);
    const result = person ? { login: { accountId: person.subject } } : { error: "access_denied" };
    await signingIn.interactionFinished(req, res, result);
  }

  return {
    issuer,
    port: Number(new URL(issuer).port),
    serve(clientId, redirectUri) {
      provider = makeProvider({ issuer, host, privateKey, clientId, redirectUri });
    },
    sign: (claims, lifeS) =>
      new SignJWT({ ...claims })
        .setProtectedHeader({ alg: "ES256", kid: KEY_ID, typ: "JWT" })
        .setIssuer(issuer)
        .setIssuedAt()
        .setExpirationTime(`${lifeS}s`)
        .sign(privateKey),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function cookiesWithout(prefix: string, header = ""): string {
  const cookies = header.split("; ").filter((cookie) => !cookie.startsWith(prefix));
  return cookies.join("; ");
}

function wordsOf(error: unknown): string {
  return error instanceof Error && error.name === "SessionNotFound"
    ? "This login is over, or was begun in another browser."
    : "Something went wrong in the demo.";
}

function send(res: ServerResponse, { status, headers, body = "" }: WebAnswer): void {
  res.writeHead(status, { ...headers } as Record<string, string>).end(body);
}
