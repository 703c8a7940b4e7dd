// The state of logins between requests. It is stored, and nodes of two releases share the store during an upgrade, so
// the names of fields stay.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { invalidArgument } from "../../kernel/errors.js";
import type { WebRequest } from "../../kernel/web.js";
import type { TicketKind, TicketOrigin } from "../../store/tables/tokens.js";
import type { Tx } from "../../store/transaction.js";
import { type MasterKey, sealForStore } from "../keys/master-key.js";
import type { TokenRequest } from "../sts/token-request.js";
import type { TokenGrant } from "../tokens.js";
import type { Start } from "./start-limit.js";

/** Where the outcome of a login goes. */
export type Destination =
  /** A program on the same machine gets a code and exchanges it for tokens (RFC 8252). */
  | {
      readonly kind: "code";
      readonly clientId: string;
      readonly redirectUri: string;
      readonly state?: string | undefined;
    }
  /** A program on the same machine gets the tokens in the redirect, as published clients expect. */
  | { readonly kind: "redirect"; readonly url: string }
  /** A terminal on another machine polls, and gets the outcome encrypted for its public key. */
  | { readonly kind: "headless"; readonly key: string; readonly clientId?: string | undefined }
  /** A device polls (RFC 8628). */
  | { readonly kind: "device"; readonly userCode: string; readonly asker: DeviceClient };

export type HeadlessDestination = Extract<Destination, { kind: "headless" }>;

/** The device that requests access. */
export interface DeviceClient {
  readonly clientId: string;
  /** The address of the request. */
  readonly address: string;
  readonly atMs: number;
}

export interface LoginRequest {
  readonly to: Destination;
  /** What the token shall be valid for. */
  readonly asked: TokenRequest;
  /** Whether the program asks for a refresh token. */
  readonly refresh: boolean;
  /** Whether a person without an account is registered, where the service allows it. */
  readonly register: boolean;
  readonly invite?: string | undefined;
  /** The uid of the identity to assume, instead of the person who signs in. */
  readonly identity?: string | undefined;
  /** The PKCE challenge, where the outcome is a code. */
  readonly challenge?: string | undefined;
  /** Whether the program that gets a code asks for an ID token, and what it must repeat. */
  readonly idToken?: { readonly nonce?: string | undefined } | undefined;
}

/** The provider that the browser was sent to, as it was then. */
export interface SentTo {
  /** The name of a login provider of the service, or the uid of an organisation's provider. */
  readonly id: string;
  readonly issuer: string;
  readonly clientId: string;
  /** The path of its redirect URI. */
  readonly callbackPath: string;
}

/** A login in progress in a browser. */
export type Authorization = {
  /** The hash of the browser's cookie. */
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
      /** The verified ID token of the person. */
      readonly idToken: string;
    }
  | {
      readonly stage: "approval";
      readonly userCode: string;
      readonly asker: DeviceClient;
      readonly person: string;
      readonly outcome: DeviceOutcome;
    }
);

/** The provider that a request names. */
export interface NamedProvider {
  /** The name of a login provider. */
  readonly connection?: string | undefined;
  /** The uid of an organisation's provider, or the name of a verified organisation. */
  readonly idpId?: string | undefined;
}

/** A person who signed in, and what their tokens are valid for. */
export interface SignedInFor {
  readonly identityUid: string;
  readonly asked: TokenRequest;
  readonly mappings: readonly string[];
  readonly informative: Readonly<Record<string, unknown>>;
  /** Whether the login issues a refresh token. */
  readonly refresh: boolean;
  /** The time of the login, in epoch milliseconds. */
  readonly atMs: number;
}

export type IssuedCode =
  | {
      readonly used: false;
      readonly clientId: string;
      readonly redirectUri: string;
      readonly challenge: string;
      readonly login: SignedInFor;
      readonly idToken?: LoginRequest["idToken"];
    }
  /** A redeemed code. If it is used again, its login ends. */
  | { readonly used: true; readonly refreshToken?: string | undefined };

/** What a device gets after the approval. */
export interface DeviceOutcome {
  readonly login: SignedInFor;
  /** The uid of the organisation's provider that the person signed in through, if any. */
  readonly providerUid?: string | undefined;
}

/** A login that an ID token of this service stands for, until it is exchanged. */
export interface IdTokenLogin {
  readonly identityUid: string;
  readonly grant: TokenGrant;
  /** The uid of the organisation's provider that the person signed in through, if any. */
  readonly providerUid?: string | undefined;
  /** The time of the login, in epoch milliseconds. */
  readonly atMs: number;
}

export interface DeviceRequest {
  readonly asker: DeviceClient;
  readonly asked: TokenRequest;
  readonly refresh: boolean;
  readonly userCode: string;
  readonly expireTimeMs: number;
  /** Until when the request is kept, so that the device learns that it has expired. */
  readonly forgetTimeMs: number;
  /** The polling interval in milliseconds, and the time of the last poll. */
  readonly intervalMs: number;
  readonly polledMs: number;
  readonly decision: "none" | "denied" | DeviceOutcome;
}

/** A terminal that waits for the outcome of a headless login. */
export interface WaitingTerminal {
  /** The addresses from which it polls. */
  readonly addresses: readonly string[];
  /** The time of the first poll, in epoch milliseconds. */
  readonly atMs: number;
}

// Tickets store the state of logins. A ticket is encrypted, and found by the hash of a secret that only the browser,
// program or device has.

/** The value of each kind of ticket. */
export interface TicketValues {
  readonly authorization: Authorization;
  readonly code: IssuedCode;
  readonly device: DeviceRequest;
  readonly "user-code": { readonly deviceCode: string };
  readonly "id-token": IdTokenLogin;
  readonly terminal: WaitingTerminal;
}

type Kind = keyof TicketValues & TicketKind;

/** Creates a secret of 256 bits. */
export function createSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** Hashes a secret as it is stored. */
export function hashTicket(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** The context in which a ticket is sealed. */
export function formatTicketContext(kind: string, hash: string): string {
  return `login ${kind} ${hash}`;
}

export type Tickets = ReturnType<typeof createTickets>;

export function createTickets(masterKey: MasterKey) {
  return {
    /** Finds the value of a ticket; undefined when there is none or it has expired. */
    async find<K extends Kind>(tx: Tx, kind: K, secret: string, nowMs: number): Promise<TicketValues[K] | undefined> {
      const hash = hashTicket(secret);
      const row = await tx.tickets.find(kind, hash);
      if (row === undefined || row.expireTimeMs <= nowMs) return undefined;
      const { sealed } = row.data as { readonly sealed: string };
      return JSON.parse(masterKey.unseal(sealed, formatTicketContext(kind, hash)).toString()) as TicketValues[K];
    },

    /**
     * Stores a ticket, in place of the one with the same secret.
     *
     * @param origin what a limit counts it for; without it, a ticket that is replaced keeps its origin
     */
    async put<K extends Kind>(
      tx: Tx,
      kind: K,
      secret: string,
      value: TicketValues[K],
      expireTimeMs: number,
      origin?: TicketOrigin,
    ): Promise<void> {
      const hash = hashTicket(secret);
      const context = formatTicketContext(kind, hash);
      const sealed = await sealForStore(tx, masterKey, Buffer.from(JSON.stringify(value)), context);
      await tx.tickets.put({ hash, kind, data: { sealed }, expireTimeMs }, origin);
    },

    /** Stores a ticket in place of those that it replaces at the limit of its origin. */
    async start<K extends Kind>(
      tx: Tx,
      kind: K,
      secret: string,
      value: TicketValues[K],
      expireTimeMs: number,
      { origin, replaced }: Start,
    ): Promise<void> {
      for (const hash of replaced) await tx.tickets.delete(hash);
      await this.put(tx, kind, secret, value, expireTimeMs, origin);
    },

    async delete(tx: Tx, secret: string): Promise<void> {
      await tx.tickets.delete(hashTicket(secret));
    },
  };
}

// A cookie binds a login to a browser: a login that was started in one browser cannot be completed in another (login
// CSRF).

/** How long a login may take, in milliseconds. */
export const LOGIN_MS = 10 * 60 * 1000;

const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** A browser, known by its cookie. */
export interface Browser {
  /** The hash that binds state to this browser. */
  readonly hash: string;
  /** The hidden field of its forms, which other sites cannot know (CSRF token). */
  readonly formSecret: string;
  /** The Set-Cookie header that sets or renews the cookie. */
  readonly cookie: string;
  /** Whether the request came with the cookie, so the browser has been here before. */
  readonly isKnown: boolean;
}

/** Gets the browser of a request; it gets a new cookie if it has none. */
export function getBrowser(request: WebRequest, secure: boolean): Browser {
  const found = findSecret(request, secure);
  const secret = found ?? randomBytes(32).toString("base64url");
  const attributes = `Path=/; Max-Age=${LOGIN_MS / 1000}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
  return {
    hash: hashFor("browser", secret),
    formSecret: hashFor("form", secret),
    cookie: `${cookieName(secure)}=${secret}; ${attributes}`,
    isKnown: found !== undefined,
  };
}

/** Finds the browser of a request by its cookie. */
export function findBrowser(request: WebRequest, secure: boolean): Browser | undefined {
  return findSecret(request, secure) === undefined ? undefined : getBrowser(request, secure);
}

/**
 * Requires that a form comes from a page of this service in the same browser.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireOwnForm(form: URLSearchParams, browser: Browser | undefined): Browser {
  const given = Buffer.from(form.get("form") ?? "");
  const expected = Buffer.from(browser?.formSecret ?? "");
  if (browser !== undefined && given.length === expected.length && timingSafeEqual(given, expected)) return browser;
  const rule = "the form is not of this browser or too old: allow cookies for this site and open the page again";
  throw invalidArgument({ field: "form", subject: "", rule });
}

// Only this host can set a cookie with the prefix, and only over TLS (RFC 6265bis, section 4.1.3.2). On cleartext
// loopback, where browsers differ, the cookie has no prefix.
function cookieName(secure: boolean): string {
  return secure ? "__Host-arbor-login" : "arbor-login";
}

function findSecret(request: WebRequest, secure: boolean): string | undefined {
  const secret = request.cookie(cookieName(secure));
  return secret !== undefined && SECRET.test(secret) ? secret : undefined;
}

function hashFor(use: string, secret: string): string {
  return createHash("sha256").update(`arbor login ${use} ${secret}`).digest("base64url");
}
