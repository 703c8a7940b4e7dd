// The handlers of SecurityTokenService.
import { Code } from "@connectrpc/connect";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { parseBearer } from "../../kernel/bearer.js";
import { ApiError, type FieldViolation, invalidArgument, unauthenticated } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import { timestampOf } from "../../kernel/time.js";
import { withOutcome, withPreparation } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import type { Store } from "../../store/store.js";
import type { LastSeen } from "../maintenance.js";
import type { IssuedToken, RefreshedLogin, Tokens } from "../tokens.js";
import { type ExchangeRequest, type Exchanger, requireBearer, type VerifiedExchange } from "./exchange.js";
import type { FailureThrottle } from "./failure-throttle.js";
import { parseAudience, parseTokenLimit, type TokenRequest } from "./token-request.js";

/** The throttle's name for failed refresh tokens, which have no uid of an identity. */
const REFRESH = "refresh";

export interface StsDeps {
  readonly store: Pick<Store, "read">;
  readonly exchanger: Exchanger;
  readonly tokens: Tokens;
  readonly limiter: FailureThrottle;
  readonly lastSeen: LastSeen;
  /** The accepted values of a token's `aud`. */
  readonly audiences: readonly string[];
}

export function createSecurityTokenService({ store, exchanger, tokens, limiter, audiences, lastSeen }: StsDeps) {
  async function isIssued(authorization: string | undefined): Promise<boolean> {
    const bearer = parseBearer(authorization);
    return bearer !== undefined && (await store.read((tx) => tokens.findIdentityUid(tx, bearer))) !== undefined;
  }

  return serve(
    SecurityTokenService,
    {
      exchange: withPreparation({
        async prepare(request: ExchangeRequest & { readonly scope: string }, call): Promise<VerifiedExchange> {
          setNoStore(call.responseHeader);
          const { aud, cap, scope, scopes, identity, identityProvider } = request;
          const { trace } = call;
          const { record } = call.inbound;
          const tokenRequest = { aud, cap, scopes: [scope, ...scopes], identity, identityProvider, trace, record };
          return exchanger.verify(
            tokenRequest,
            requireBearer(call.inbound.header("authorization")),
            call.inbound.remoteAddress,
          );
        },
        async handle(_request, { tx, inbound }, verified: VerifiedExchange) {
          const issued = await exchanger.finish(tx, verified, inbound.remoteAddress);
          return withOutcome(async () => toRawToken(await tokens.sign(issued)), {});
        },
      }),

      exchangeRefreshToken: withPreparation({
        // Callers with unknown tokens wait here, before the transaction, which must not wait. Tokens that were issued
        // cannot be guessed, so they never wait for others of their address.
        async prepare(_request: RefreshRequest, { inbound, responseHeader }): Promise<void> {
          setNoStore(responseHeader);
          if (await isIssued(inbound.header("authorization"))) return;
          await limiter.admit({ remoteAddress: inbound.remoteAddress, name: REFRESH });
        },
        async handle({ aud, cap, scope, scopes }: RefreshRequest, { tx, startMs, inbound }) {
          let subjectUid: string | undefined;
          let refreshed: RefreshedLogin | undefined;
          try {
            refreshed = await limiter.count({ remoteAddress: inbound.remoteAddress, name: REFRESH }, async () => {
              const bearer = requireBearer(inbound.header("authorization"));
              subjectUid = await tokens.findIdentityUid(tx, bearer);
              const request = { aud, cap, scopes: [scope, ...scopes] };
              const requested = parseRequestedGrant(request, audiences);
              const client = addressKey(inbound.remoteAddress);
              const found = await tokens.rotate(tx, bearer, requested, { client, nowMs: startMs });
              if (found === undefined) throw unauthenticated();
              return found;
            });
          } catch (error) {
            if (!(error instanceof ApiError) || error.code !== Code.Unauthenticated) throw error;
            // An unknown token changed nothing that must be committed.
            if (subjectUid === undefined) throw error;
            // The reuse of a stolen token ended the login. This must be committed although the call fails.
            return withOutcome({}, { subjectUid, error });
          }
          lastSeen.touch(refreshed.identityUid, startMs);
          const { identityUid, token, refreshToken, refreshExpiresAtMs } = refreshed;
          const expiry = timestampOf(refreshExpiresAtMs);
          return withOutcome(
            async () => ({
              token: toRawToken(await tokens.sign(token)),
              refreshToken: { token: refreshToken, expiry },
            }),
            { subjectUid, actorUid: identityUid },
          );
        },
      }),
    },
    {
      // Clients of other versions send query parameters of their own.
      exchange: { selfAuthenticating: true, ignoreUnknownQuery: true },
      exchangeRefreshToken: { selfAuthenticating: true, ignoreUnknownQuery: true },
    },
  );
}

type RefreshRequest = TokenRequest & { readonly scope: string };

function parseRequestedGrant(
  { aud, cap, scopes }: { aud: readonly string[]; cap: readonly string[]; scopes: readonly string[] },
  audiences: readonly string[],
) {
  const violations: FieldViolation[] = [];
  const limit = parseTokenLimit({ cap, scopes }, violations);
  const audience = parseAudience(aud, audiences, violations);
  if (violations.length > 0) throw invalidArgument(...violations);
  return { ...(audience !== undefined && { audience }), ...(limit && { limit }) };
}

function toRawToken({ token, expiresAtMs }: IssuedToken) {
  return { token, expiry: timestampOf(expiresAtMs) };
}

// Tokens must not be cached (RFC 6749, section 5.1).
function setNoStore(headers: Headers): void {
  headers.set("cache-control", "no-store");
  headers.set("pragma", "no-cache");
  headers.set("vary", "authorization");
}
