// The handlers of SecurityTokenService.
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { SecurityTokenService } from "#gen/chainguard/platform/oidc/oidc_pb.js";
import { ApiError, type FieldViolation, invalidArgument, unauthenticated } from "../../kernel/errors.js";
import { serve, withOutcome, withPreparation } from "../../pipeline/method-table.js";
import type { IssuedToken, Renewed, Tokens } from "../tokens.js";
import { bearerIn } from "./bearer.js";
import type { ExchangeRequest, Exchanger, Verified } from "./exchange.js";
import type { FailureLimiter } from "./failure-limiter.js";
import type { LastSeen } from "./last-seen.js";
import { audiencesIn, isAudience, limitOf, type TokenRequest } from "./token-request.js";

/** What refused refresh tokens are counted by, which name nobody. */
const REFRESH = "refresh";

/** What the service needs. */
export interface StsDeps {
  readonly exchanger: Exchanger;
  readonly tokens: Tokens;
  readonly limiter: FailureLimiter;
  readonly lastSeen: LastSeen;
  /** What the `aud` of a token may be, asked each time. */
  readonly audiences: () => readonly string[];
}

/** SecurityTokenService, ready to be served. */
export function securityTokenService({ exchanger, tokens, limiter, audiences, lastSeen }: StsDeps) {
  return serve(
    SecurityTokenService,
    {
      exchange: withPreparation({
        async prepare(request: ExchangeRequest & { readonly scope: string }, call): Promise<Verified> {
          noStore(call.responseHeader);
          const { aud, cap, scope, scopes, identity, identityProvider } = request;
          const asked = { aud, cap, scopes: [scope, ...scopes], identity, identityProvider };
          return exchanger.verify(asked, bearerIn(call.inbound.header("authorization")), call.inbound.remoteAddress);
        },
        async handle(_request, { tx, inbound }, verified: Verified) {
          return rawToken(await exchanger.finish(tx, verified, inbound.remoteAddress));
        },
      }),

      exchangeRefreshToken: withPreparation({
        // Here and not in the transaction, which nobody may hold up.
        async prepare(_request: RefreshRequest, { inbound, responseHeader }): Promise<void> {
          noStore(responseHeader);
          await limiter.admit({ remoteAddress: inbound.remoteAddress, name: REFRESH });
        },
        async handle({ aud, cap, scope, scopes }: RefreshRequest, { tx, startMs, inbound }) {
          let subjectUid: string | undefined;
          let renewed: Renewed | undefined;
          try {
            renewed = await limiter.count({ remoteAddress: inbound.remoteAddress, name: REFRESH }, async () => {
              const bearer = bearerIn(inbound.header("authorization"));
              subjectUid = await tokens.holder(tx, bearer);
              const wanted = wantedOf({ aud, cap, scopes: [scope, ...scopes] }, audiences());
              const found = await tokens.rotate(tx, bearer, wanted, startMs);
              if (found === undefined) throw unauthenticated();
              return found;
            });
          } catch (error) {
            if (!(error instanceof ApiError) || error.code !== Code.Unauthenticated) throw error;
            // A token that was never issued changes nothing.
            if (subjectUid === undefined) throw error;
            // That a stolen token ended the login must be committed, although the call fails.
            return withOutcome({}, { subjectUid, error });
          }
          lastSeen.touch(renewed.identityUid, startMs);
          const expiry = timestampFromMs(renewed.refreshExpiresAtMs);
          return withOutcome(
            { token: rawToken(renewed.token), refreshToken: { token: renewed.refreshToken, expiry } },
            { subjectUid, actorUid: renewed.identityUid },
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

function wantedOf(
  { aud, cap, scopes }: { aud: readonly string[]; cap: readonly string[]; scopes: readonly string[] },
  audiences: readonly string[],
) {
  const violations: FieldViolation[] = [];
  const limit = limitOf({ cap, scopes }, violations);
  const [audience, ...more] = audiencesIn(aud);
  if (more.length > 0 || (audience !== undefined && !isAudience(audience, audiences))) {
    violations.push({ field: "aud", description: "aud must be the base URL of this service" });
  }
  if (violations.length > 0) throw invalidArgument(...violations);
  return { ...(audience !== undefined && { audience }), ...(limit && { limit }) };
}

function rawToken({ token, expiresAtMs }: IssuedToken) {
  return { token, expiry: timestampFromMs(expiresAtMs) };
}

// A token in a cache is a token for whoever reads the cache (RFC 6749, section 5.1).
function noStore(headers: Headers): void {
  headers.set("cache-control", "no-store");
  headers.set("pragma", "no-cache");
  headers.set("vary", "authorization");
}
