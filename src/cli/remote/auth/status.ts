// `arbor auth status`: the stored login, and the identity that it authenticates; without a login the token of ARBOR_TOKEN.
import type { JsonObject } from "@bufbuild/protobuf";
import type { TokenSource } from "../../../client/token-source.js";
import { Code, CommandError, notLoggedIn } from "../../errors.js";
import { formatResponse } from "../../output/format.js";
import { withStdout } from "../../output/terminal.js";
import { formatTime } from "../../output/time.js";
import { createOutputFilter, type Format } from "../flags.js";
import { type ApiFlags, resolveApi, type ServiceResponse, sendRequest } from "../service.js";
import { findStoredToken, noteVariable, parseRefreshExpiryMs } from "./credentials.js";
import { findCredentialsFile, readCredentials, type StoredLogin } from "./credentials-file.js";
import { parseClaims } from "./token-claims.js";

/** The flags of `arbor auth status`. */
export interface StatusFlags extends ApiFlags {
  readonly output: Format;
  readonly jq?: string;
}

/** How a service cannot be asked. */
const UNASKED: ReadonlySet<CommandError["code"]> = new Set([Code.Unavailable, Code.DeadlineExceeded]);

/**
 * `arbor auth status`. It shows the stored login even when the service does not answer.
 *
 * @throws CommandError UNAUTHENTICATED without a login or when the service rejects it, UNAVAILABLE when
 * it cannot be reached
 */
export async function statusCommand(flags: StatusFlags): Promise<void> {
  const api = resolveApi(flags);
  const source = await findStoredToken(api);
  if (source === undefined) return printVariable(api, flags);
  let failure: unknown;
  const accepted = await fetchIdentity(api, source).catch((error: unknown) => {
    failure = error;
    return undefined;
  });
  const file = findCredentialsFile();
  // Read after the request, which may have renewed the login.
  const login = (await readCredentials(file)).logins.get(api);
  if (login === undefined) throw notLoggedIn(api);
  const shown = {
    api,
    credential: "login",
    ...(accepted ?? buildClaimFields(login)),
    ...buildRenewalFields(login),
    credentialsFile: file,
  };
  await print({ ...shown, ...buildOutcome(failure) }, flags);
  noteVariable();
  if (failure !== undefined) throw failure;
}

/** Without a login the token that commands use is that of the variable. */
async function printVariable(api: string, flags: StatusFlags): Promise<void> {
  if (!process.env.ARBOR_TOKEN) throw notLoggedIn(api);
  // Loaded only here, because it loads the RPC library.
  const { explainRefusal, findToken } = await import("../given-token.js");
  const given = await findToken({}, api);
  if (given.token === undefined) throw notLoggedIn(api);
  const token = await given.token.token();
  let failure: unknown;
  const accepted = await askIdentity(api, token).catch(async (error: unknown) => {
    failure = error;
    if (!(error instanceof CommandError && error.code === Code.Unauthenticated)) return undefined;
    const lines = await explainRefusal(given, api, error.message);
    failure = new CommandError(error.code, [error.message, ...lines].join("\n  "), error);
    return undefined;
  });
  const shown = {
    api,
    credential: "ARBOR_TOKEN",
    ...(accepted ?? buildClaimFields({ token })),
    renewedWith: "nothing",
  };
  await print({ ...shown, ...buildOutcome(failure) }, flags);
  if (failure !== undefined) throw failure;
}

/** Whether the service accepts the token; nothing where it could not be asked. */
function buildOutcome(failure: unknown): JsonObject {
  if (failure === undefined) return { accepted: true };
  return failure instanceof CommandError && UNASKED.has(failure.code) ? {} : { accepted: false };
}

async function print(response: JsonObject, flags: StatusFlags): Promise<void> {
  await withStdout(async ({ write, terminal }) => {
    await write(formatResponse(flags.output, response, () => toRows(response), terminal));
  }, createOutputFilter(flags));
}

/** Asks the service whom a token authenticates: `identity`, and `name` and `email` where it has them. */
export async function askIdentity(api: string, bearer: string): Promise<JsonObject> {
  return buildIdentityFields(await sendRequest({ method: "GET", api, path: "/auth/v1/ok", bearer }));
}

async function fetchIdentity(api: string, source: TokenSource): Promise<JsonObject> {
  const token = await source.token();
  try {
    return await askIdentity(api, token);
  } catch (error) {
    // As with every call, because the service may reject a token before it expires and accept the next one.
    if (!(error instanceof CommandError && error.code === Code.Unauthenticated)) throw error;
    const renewed = await source.renew?.(token);
    if (renewed === undefined || renewed === token) throw notLoggedIn(api, error.message);
    return askIdentity(api, renewed);
  }
}

function buildIdentityFields({ subject, issuer, expiry, email, profile }: ServiceResponse): JsonObject {
  const name = typeof profile === "object" && profile !== null && "name" in profile ? profile.name : undefined;
  return selectNonEmpty({ identity: subject, name, email, issuer, expireTime: expiry });
}

function buildClaimFields({ token }: Pick<StoredLogin, "token">): JsonObject {
  const { subject, issuer, expiresMs } = parseClaims(token);
  return selectNonEmpty({
    identity: subject,
    issuer,
    expireTime: expiresMs === undefined ? undefined : formatTime(expiresMs),
  });
}

function buildRenewalFields({ refreshToken, workload }: StoredLogin): JsonObject {
  if (workload) return { renewedWith: "identity token", identityTokenFile: workload.tokenFile };
  if (refreshToken === undefined) return { renewedWith: "nothing" };
  const untilMs = parseRefreshExpiryMs(refreshToken);
  return { renewedWith: "refresh token", ...(untilMs !== undefined && { renewableUntil: formatTime(untilMs) }) };
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
