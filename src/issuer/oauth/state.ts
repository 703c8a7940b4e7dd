// The state of logins between requests. It is stored, and nodes of two releases share the store during an upgrade, so
// the names of fields stay.

import type { TokenRequest } from "../sts/token-request.js";
import type { TokenGrant } from "../tokens.js";
import type { Claims } from "./user-info.js";

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

/** Whether nobody is asked anything, the person authenticates again, or chooses an account. */
export type LoginPrompt = "none" | "login" | "select_account";

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
  /** Whether the provider may ask the person; only the console says so (OpenID Connect Core 1.0, section 3.1.2.1). */
  readonly prompt?: LoginPrompt | undefined;
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
      /** See `VerifiedIdToken`; absent in logins of older releases. */
      readonly added?: Claims;
      readonly isPartial?: boolean;
      /** When all tokens of the person had been revoked last, as the page was made; absent where a version before stored it. */
      readonly revokeTimeMs?: number;
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
  /** When all tokens of the identity had been revoked last, as the login read it; absent where a version before stored it. */
  readonly revokeTimeMs?: number | undefined;
}

export type IssuedCode =
  | {
      readonly used: false;
      readonly clientId: string;
      readonly redirectUri: string;
      readonly challenge: string;
      readonly login: SignedInFor;
      readonly idToken?: LoginRequest["idToken"];
      /** The hash of the cookie of the browser that logged in; absent where a version before stored it. */
      readonly browser?: string | undefined;
    }
  /** A redeemed code. If it is used again, its login ends. */
  | {
      readonly used: true;
      readonly refreshToken?: string | undefined;
      readonly session?: BegunSession | undefined;
    };

/** The session of the console that a code began. The browser that did not get the response may send its request again. */
export interface BegunSession {
  readonly id: string;
  /** The hash in the store. */
  readonly hash: string;
  /** The PKCE challenge of the code, and the hash of the key of the browser: what a repeat must match. */
  readonly challenge: string;
  readonly keyHash: string;
  /** Until when, in epoch milliseconds. */
  readonly untilMs: number;
}

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
  /** As that of {@link SignedInFor}. */
  readonly revokeTimeMs?: number | undefined;
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
