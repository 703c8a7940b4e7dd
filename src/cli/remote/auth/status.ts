// `arbor auth status`: what is stored, and what the service says to it.
import type { JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { TokenSource } from "../../../client/token-source.js";
import { answerText } from "../../output/format.js";
import type { Format } from "../../output/formats.js";
import { withStdout } from "../../output/stdout.js";
import { type ApiFlags, apiOf } from "./api.js";
import { claimsOf, refreshExpiryMs } from "./claims.js";
import { storedToken } from "./credentials.js";
import { credentialsFile, type Login, readCredentials } from "./credentials-file.js";
import { notLoggedIn } from "./failure.js";
import { askService, type ServiceAnswer } from "./service.js";

/** The flags of `arbor auth status`. */
export interface StatusFlags extends ApiFlags {
  readonly output: Format;
}

/**
 * `arbor auth status`. What is stored is shown even when the service cannot be asked.
 *
 * @throws ConnectError UNAUTHENTICATED without a login or when the service refuses it, UNAVAILABLE when
 * it cannot be reached
 */
export async function statusCommand({ output: format, ...flags }: StatusFlags): Promise<void> {
  const api = apiOf(flags);
  const source = await storedToken(api);
  if (source === undefined) throw notLoggedIn(api);
  let fault: unknown;
  const accepted = await whoAmI(api, source).catch((error: unknown) => {
    fault = error;
    return undefined;
  });
  const file = credentialsFile();
  // Read after a renewal, which changes it.
  const login = (await readCredentials(file)).logins.get(api);
  if (login === undefined) throw notLoggedIn(api);
  const answer: JsonObject = { api, ...(accepted ?? storedClaims(login)), ...renewalOf(login), credentialsFile: file };
  answer.accepted = accepted !== undefined;
  await withStdout(async ({ write, terminal }) => {
    await write(answerText(format, answer, () => rowsOf(answer), terminal));
  });
  if (fault !== undefined) throw fault;
}

async function whoAmI(api: string, source: TokenSource): Promise<JsonObject> {
  const ask = (bearer: string) => askService({ method: "GET", api, path: "/auth/v1/ok", bearer });
  const token = await source.token();
  try {
    return identityIn(await ask(token));
  } catch (error) {
    // As with every call: a token may be refused before its time, and its successor be good.
    if (!(error instanceof ConnectError && error.code === Code.Unauthenticated)) throw error;
    const renewed = await source.renew?.(token);
    if (renewed === undefined || renewed === token) throw error;
    return identityIn(await ask(renewed));
  }
}

function identityIn({ subject, issuer, expiry, email, profile }: ServiceAnswer): JsonObject {
  const name = typeof profile === "object" && profile !== null && "name" in profile ? profile.name : undefined;
  return texts({ identity: subject, name, email, issuer, expireTime: expiry });
}

function storedClaims({ token }: Login): JsonObject {
  const { subject, issuer, expiresMs } = claimsOf(token);
  return texts({ identity: subject, issuer, expireTime: timeOf(expiresMs) });
}

function renewalOf({ refreshToken, workload }: Login): JsonObject {
  if (workload) return { renewedWith: "identity token", identityTokenFile: workload.tokenFile };
  if (refreshToken === undefined) return { renewedWith: "nothing" };
  return { renewedWith: "refresh token", ...texts({ renewableUntil: timeOf(refreshExpiryMs(refreshToken)) }) };
}

function timeOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}

function texts(members: Readonly<Record<string, unknown>>): JsonObject {
  return Object.fromEntries(
    Object.entries(members).filter((member): member is [string, string] => {
      return typeof member[1] === "string" && member[1] !== "";
    }),
  );
}

// `renewableUntil` is headed RENEWABLE UNTIL.
function rowsOf(answer: JsonObject): [field: string, value: string][] {
  return Object.entries(answer).map(([name, value]) => [
    name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`),
    String(value),
  ]);
}
