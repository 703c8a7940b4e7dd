// What is remembered of logins under way, from one request to the next.
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
