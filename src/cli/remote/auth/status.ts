// `arbor auth status`: the stored login, and the identity that it authenticates.
import type { JsonObject } from "@bufbuild/protobuf";
import type { TokenSource } from "../../../client/token-source.js";
import { Code, CommandError, notLoggedIn } from "../../errors.js";
import { formatResponse } from "../../output/format.js";
import { withStdout } from "../../output/terminal.js";
import type { Format } from "../flags.js";
import { type ApiFlags, resolveApi, type ServiceResponse, sendRequest } from "../service.js";
import { findStoredToken, parseRefreshExpiryMs } from "./credentials.js";
import { findCredentialsFile, readCredentials, type StoredLogin } from "./credentials-file.js";
import { parseClaims } from "./token-claims.js";

/** The flags of `arbor auth status`. */
export interface StatusFlags extends ApiFlags {
  readonly output: Format;
}

/**
 * `arbor auth status`. It shows the stored login even when the service does not answer.
 *
 * @throws CommandError UNAUTHENTICATED without a login or when the service rejects it, UNAVAILABLE when
 * it cannot be reached
 */
export async function statusCommand({ output: format, ...flags }: StatusFlags): Promise<void> {
  const api = resolveApi(flags);
  const source = await findStoredToken(api);
  if (source === undefined) throw notLoggedIn(api);
  let failure: unknown;
  const accepted = await fetchIdentity(api, source).catch((error: unknown) => {
    failure = error;
    return undefined;
  });
  const file = findCredentialsFile();
  // Read after the request, which may have renewed the login.
  const login = (await readCredentials(file)).logins.get(api);
  if (login === undefined) throw notLoggedIn(api);
  const response: JsonObject = {
    api,
    ...(accepted ?? buildClaimFields(login)),
    ...buildRenewalFields(login),
    credentialsFile: file,
  };
  response.accepted = accepted !== undefined;
  await withStdout(async ({ write, terminal }) => {
    await write(formatResponse(format, response, () => toRows(response), terminal));
  });
  if (failure !== undefined) throw failure;
}

async function fetchIdentity(api: string, source: TokenSource): Promise<JsonObject> {
  const send = (bearer: string) => sendRequest({ method: "GET", api, path: "/auth/v1/ok", bearer });
  const token = await source.token();
  try {
    return buildIdentityFields(await send(token));
  } catch (error) {
    // As with every call, because the service may reject a token before it expires and accept the next one.
    if (!(error instanceof CommandError && error.code === Code.Unauthenticated)) throw error;
    const renewed = await source.renew?.(token);
    if (renewed === undefined || renewed === token) throw notLoggedIn(api, error.message);
    return buildIdentityFields(await send(renewed));
  }
}

function buildIdentityFields({ subject, issuer, expiry, email, profile }: ServiceResponse): JsonObject {
  const name = typeof profile === "object" && profile !== null && "name" in profile ? profile.name : undefined;
  return selectNonEmpty({ identity: subject, name, email, issuer, expireTime: expiry });
}

function buildClaimFields({ token }: StoredLogin): JsonObject {
  const { subject, issuer, expiresMs } = parseClaims(token);
  return selectNonEmpty({ identity: subject, issuer, expireTime: formatTime(expiresMs) });
}

function buildRenewalFields({ refreshToken, workload }: StoredLogin): JsonObject {
  if (workload) return { renewedWith: "identity token", identityTokenFile: workload.tokenFile };
  if (refreshToken === undefined) return { renewedWith: "nothing" };
  return {
    renewedWith: "refresh token",
    ...selectNonEmpty({ renewableUntil: formatTime(parseRefreshExpiryMs(refreshToken)) }),
  };
}

function formatTime(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

function selectNonEmpty(members: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).filter((member): member is [string, string] => {
      return typeof member[1] === "string" && member[1] !== "";
    }),
  );
}

// The row of `renewableUntil` is named "renewable until".
function toRows(response: JsonObject): [field: string, value: string][] {
  return Object.entries(response).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
    String(value),
  ]);
}
