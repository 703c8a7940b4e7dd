// What is remembered of logins under way, from one request to the next.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { invalidArgument } from "../../kernel/errors.js";
import type { WebRequest } from "../../kernel/web.js";
import type { TicketKind, Tx } from "../../store/port.js";
import type { MasterKey } from "../keys/master-key.js";
import type { TokenRequest } from "../sts/token-request.js";

/** Where the outcome of a login goes. */
export type Destination =
  /** To a program on the same machine, which changes a code for tokens (RFC 8252). */
  | {
      readonly kind: "code";
      readonly clientId: string;
      readonly redirectUri: string;
      readonly state?: string | undefined;
    }
  /** To a program on the same machine, with the tokens, as published clients expect them. */
  | { readonly kind: "redirect"; readonly url: string }
  /** To a terminal elsewhere that polls, sealed with its public key. */
  | { readonly kind: "headless"; readonly key: string }
  /** To a device that polls (RFC 8628). */
  | { readonly kind: "device"; readonly userCode: string; readonly asker: Asker };

/** Who asks for access by a device code. */
export interface Asker {
  readonly clientId: string;
  /** The address the request came from. */
  readonly address: string;
  readonly atMs: number;
}

/** What a login is asked for. */
export interface LoginRequest {
  readonly to: Destination;
  /** What the token is to be good for. */
  readonly asked: TokenRequest;
  /** Whether a refresh token is wanted. */
  readonly refresh: boolean;
  /** Whether somebody unknown may become known, as far as the service allows it. */
  readonly register: boolean;
  readonly invite?: string | undefined;
  /** The uid of the identity to assume instead of signing in as oneself. */
  readonly identity?: string | undefined;
  /** PKCE, where the outcome is a code. */
  readonly challenge?: string | undefined;
}

/** A provider that somebody was sent to, as it was then. */
export interface SentTo {
  /** The name of a login provider of the service, or the uid of an organisation's provider. */
  readonly id: string;
  readonly issuer: string;
  readonly clientId: string;
  /** The path that its answer must come to. */
  readonly callbackPath: string;
}

/** A login under way in a browser. */
export type Authorization = {
  /** The browser it goes on in. */
  readonly browser: string;
} & (
  | { readonly stage: "confirmed"; readonly request: LoginRequest; readonly named: NamedProvider }
  | {
      readonly stage: "provider";
      readonly request: LoginRequest;
      readonly sentTo: SentTo;
      readonly nonce: string;
      readonly verifier: string;
    }
  | {
      readonly stage: "consent";
      readonly request: LoginRequest;
      readonly sentTo: SentTo;
      /** Of the person who signed in; it was verified before. */
      readonly idToken: string;
    }
  | {
      readonly stage: "approval";
      readonly userCode: string;
      readonly asker: Asker;
      readonly person: string;
      readonly outcome: DeviceOutcome;
    }
);

/** How a request names the provider it wants. */
export interface NamedProvider {
  /** The name of a login provider. */
  readonly connection?: string | undefined;
  /** The uid of an organisation's provider, or the name of a verified organisation. */
  readonly idpId?: string | undefined;
}

/** Somebody who signed in and what their tokens will be good for. */
export interface SignedInFor {
  readonly identityUid: string;
  readonly asked: TokenRequest;
  readonly mappings: readonly string[];
  readonly informative: Readonly<Record<string, unknown>>;
  /** Whether a refresh token is to be given. */
  readonly refresh: boolean;
  /** When the login was, in epoch milliseconds. */
  readonly atMs: number;
}

/** An authorization code. */
export type IssuedCode =
  | {
      readonly used: false;
      readonly clientId: string;
      readonly redirectUri: string;
      readonly challenge: string;
      readonly login: SignedInFor;
    }
  /** One that was changed already; should it come again, the login it gave ends. */
  | { readonly used: true; readonly refreshToken?: string | undefined };

/** What a device gets once it is approved. */
export interface DeviceOutcome {
  readonly login: SignedInFor;
  /** The ID token of the provider. */
  readonly idToken: string;
}

/** A request by a device. */
export interface DeviceRequest {
  readonly asker: Asker;
  readonly asked: TokenRequest;
  readonly refresh: boolean;
  readonly userCode: string;
  readonly expireTimeMs: number;
  /** Until when it can be told that it has expired. */
  readonly forgetTimeMs: number;
  /** How long the device must wait between two polls, in milliseconds; and when it polled last. */
  readonly intervalMs: number;
  readonly polledMs: number;
  readonly decision: "none" | "denied" | DeviceOutcome;
}

// The store of logins under way. What is remembered is sealed, and found by the
// hash of a secret that only who may go on with it has.

/** What tickets of each kind hold. */
export interface TicketValues {
  readonly authorization: Authorization;
  readonly code: IssuedCode;
  readonly device: DeviceRequest;
  readonly "user-code": { readonly deviceCode: string };
}

type Kind = keyof TicketValues & TicketKind;

/** Logins under way. */
export interface Tickets {
  /** Undefined where there is none, or none any more. */
  get<K extends Kind>(tx: Tx, kind: K, secret: string, nowMs: number): Promise<TicketValues[K] | undefined>;
  /** Stores it, in place of what `secret` found before. */
  put<K extends Kind>(tx: Tx, kind: K, secret: string, value: TicketValues[K], expireTimeMs: number): Promise<void>;
  delete(tx: Tx, secret: string): Promise<void>;
}

/** A new secret of 256 bits. */
export function newSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** What a secret is stored as. */
export function ticketHash(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Creates the store. */
export function createTickets(masterKey: MasterKey): Tickets {
  const contextOf = (kind: Kind, hash: string) => `login ${kind} ${hash}`;

  return {
    async get<K extends Kind>(tx: Tx, kind: K, secret: string, nowMs: number) {
      const hash = ticketHash(secret);
      const row = await tx.tickets.get(kind, hash);
      if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
      const { sealed } = row.data as { readonly sealed: string };
      return JSON.parse(masterKey.unseal(sealed, contextOf(kind, hash)).toString()) as TicketValues[K];
    },

    async put(tx, kind, secret, value, expireTimeMs) {
      const hash = ticketHash(secret);
      const sealed = masterKey.seal(Buffer.from(JSON.stringify(value)), contextOf(kind, hash));
      await tx.tickets.put({ hash, kind, data: { sealed }, expireTimeMs });
    },

    async delete(tx, secret) {
      await tx.tickets.delete(ticketHash(secret));
    },
  };
}

// Which browser a login goes on in: what was begun in one cannot be ended in
// another, so that nobody can be led into a login that somebody else began.

/** How long a login may take, in milliseconds. */
export const LOGIN_MS = 10 * 60 * 1000;

const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** A browser, by the cookie it has or is to have. */
export interface Browser {
  /** What state is bound to. */
  readonly hash: string;
  /** What its forms must bring back; other sites cannot know it. */
  readonly formSecret: string;
  /** The Set-Cookie header that gives it the cookie or makes it keep the one it has. */
  readonly cookie: string;
}

/** The browser that a request comes from, which may be new. */
export function browserOf(request: WebRequest, secure: boolean): Browser {
  const secret = secretIn(request, secure) ?? randomBytes(32).toString("base64url");
  const attributes = `Path=/; Max-Age=${LOGIN_MS / 1000}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
  return {
    hash: hashOf("browser", secret),
    formSecret: hashOf("form", secret),
    cookie: `${cookieName(secure)}=${secret}; ${attributes}`,
  };
}

/** The browser that a request comes from, if it was seen before. */
export function knownBrowserOf(request: WebRequest, secure: boolean): Browser | undefined {
  return secretIn(request, secure) === undefined ? undefined : browserOf(request, secure);
}

/**
 * Requires that a form was sent from a page of ours, in the browser that the page was shown in.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireOwnForm(form: URLSearchParams, browser: Browser | undefined): Browser {
  const given = Buffer.from(form.get("form") ?? "");
  const wanted = Buffer.from(browser?.formSecret ?? "");
  if (browser !== undefined && given.length === wanted.length && timingSafeEqual(given, wanted)) return browser;
  const rule = "the form is not of this browser or too old: allow cookies for this site and open the page again";
  throw invalidArgument({ field: "form", description: rule });
}

// A cookie with the prefix can be set by this host alone and over TLS alone (RFC 6265bis, section
// 4.1.3.2). On cleartext loopback, where browsers differ about it, the cookie has neither.
function cookieName(secure: boolean): string {
  return secure ? "__Host-arbor-login" : "arbor-login";
}

function secretIn(request: WebRequest, secure: boolean): string | undefined {
  const secret = request.cookie(cookieName(secure));
  return secret !== undefined && SECRET.test(secret) ? secret : undefined;
}

function hashOf(use: string, secret: string): string {
  return createHash("sha256").update(`arbor login ${use} ${secret}`).digest("base64url");
}
