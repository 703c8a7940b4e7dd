// `arbor auth login`: the service authenticates the person or the identity, and its tokens are stored.
import { resolve } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { isUidText } from "../../../kernel/uidp.js";
import { Code, CommandError, invalidFlag } from "../../errors.js";
import { checkFlagFile, readFlagFileOrInput } from "../../flag-file.js";
import { escapeControls } from "../../output/terminal.js";
import { type ApiFlags, fetchDiscovery, resolveApi } from "../service.js";
import { withSession } from "../session.js";
import { findStoredToken, noteVariable } from "./credentials.js";
import {
  assertWritableCredentials,
  changeCredentials,
  findCredentialsFile,
  type StoredLogin,
  setLogin,
  type Workload,
} from "./credentials-file.js";
import { exchangeWorkloadToken, type LoginOptions } from "./grants.js";
import { askIdentity } from "./status.js";
import { parseClaims } from "./token-claims.js";

/** How long a person may take, in milliseconds. */
const WAIT_MS = 600_000;

const WAITING = `Waiting for up to ${WAIT_MS / 60_000} minutes; Ctrl-C ends it.\n`;

const POLL_MS = 2_000;

/** The flags for a login as an identity with an OIDC token. */
export interface WorkloadFlags {
  readonly identity?: string;
  readonly identityToken?: string;
}

/** The flags of `arbor auth login`. */
export interface LoginFlags extends ApiFlags, WorkloadFlags {
  readonly headless?: boolean;
  /** False with `--no-browser`. */
  readonly browser: boolean;
  readonly identityProvider?: string;
  readonly connection?: string;
  readonly inviteFile?: string;
  readonly scope?: readonly string[];
  readonly cap?: readonly string[];
}

/**
 * `arbor auth login`
 *
 * @throws CommandError INVALID_ARGUMENT for flags that exclude each other
 */
export async function loginCommand(flags: LoginFlags): Promise<void> {
  const api = resolveApi(flags);
  const workload = await findWorkload(api, flags);
  const file = findCredentialsFile();
  // Fails before the login if the file cannot be used.
  await assertWritableCredentials(file);
  const login = workload ? await logInWorkload(api, workload, flags) : await logInPerson(api, flags);
  await changeCredentials(file, (stored) => setLogin(stored, api, login));
  const { expiresMs } = parseClaims(login.token);
  const until = expiresMs === undefined ? "" : `, with a token until ${new Date(expiresMs).toISOString()}`;
  process.stdout.write(`logged in at ${api} as ${escapeControls(await describeCaller(api, login))}${until}\n`);
  noteVariable();
}

/** Describes who has logged in: by name and address, or else by uid. */
async function describeCaller(api: string, { token }: StoredLogin): Promise<string> {
  const { subject = "somebody" } = parseClaims(token);
  // The login is stored, whether the service tells more or not.
  const { name, email } = await askIdentity(api, token).catch((): JsonObject => ({}));
  const known = [name, email, subject].filter((text): text is string => typeof text === "string");
  const [first = "", second] = known;
  return second === undefined ? first : `${first} (${second})`;
}

/**
 * Finds the identity and its token file in the flags; undefined without them.
 *
 * @throws CommandError INVALID_ARGUMENT for one flag without the other, for a file that cannot be read, and for a name of the
 * identity that cannot be looked up
 */
export async function findWorkload(
  api: string,
  { identity, identityToken }: WorkloadFlags,
): Promise<Workload | undefined> {
  if (identity === undefined && identityToken === undefined) return undefined;
  if (identity === undefined || identityToken === undefined) {
    throw invalidFlag("--identity", "goes together with --identity-token");
  }
  const tokenFile = resolve(identityToken);
  await checkFlagFile("--identity-token", tokenFile);
  return { identity: isUidText(identity) ? identity : await findIdentity(api, identity), tokenFile };
}

/** Finds the uid of an identity by its name, which somebody must be logged in for: the service tells nobody else. */
async function findIdentity(api: string, name: string): Promise<string> {
  const how = `somebody who may read identities prints it with: arbor iam identities get ${quoteWord(name)} -o json | jq -r .uid`;
  if (!process.env.ARBOR_TOKEN && (await findStoredToken(api)) === undefined) {
    throw invalidFlag("--identity", `must be a uid, because nobody is logged in at ${api} to look ${name} up; ${how}`);
  }
  let uid = name;
  try {
    await withSession({ api, output: "table" }, async ({ names }) => {
      uid = await names.find(["identity"], name);
    });
  } catch (error) {
    // The login need not be valid any more: it may be the one that is replaced.
    if (!(error instanceof CommandError) || error.code !== Code.Unauthenticated) throw error;
    throw invalidFlag("--identity", `must be a uid, because the login at ${api} has ended; ${how}`);
  }
  return uid;
}

/** Quotes a word for a shell where it needs that. */
function quoteWord(word: string): string {
  return /^[\w.@:/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

async function logInWorkload(api: string, workload: Workload, flags: LoginFlags): Promise<StoredLogin> {
  const { headless, identityProvider, connection, inviteFile, scope, cap } = flags;
  if ([headless, identityProvider, connection, inviteFile, scope, cap].some((flag) => flag !== undefined)) {
    throw invalidFlag("--identity", "an identity logs in only with its token; the other flags are for people");
  }
  return { token: await exchangeWorkloadToken(api, workload, api), workload };
}

async function logInPerson(api: string, flags: LoginFlags): Promise<StoredLogin> {
  const { headless, browser } = flags;
  const loginRequest = await buildLoginRequest(flags);
  await checkService(api, loginRequest);
  if (headless) {
    const { logInHeadless } = await import("./headless-login.js");
    const show = (url: string, confirmation: string) => showHeadless(url, confirmation, loginRequest.invite);
    return logInHeadless(api, loginRequest, show, { pollMs: POLL_MS, waitMs: WAIT_MS });
  }
  const { logInWithBrowser } = await import("./browser-login.js");
  // Other users of the machine can read the arguments of a browser, and open the page that leads to the invite.
  const mayOpen = browser && loginRequest.invite === undefined;
  return logInWithBrowser(api, loginRequest, (url) => showBrowser(url, mayOpen), WAIT_MS);
}

/**
 * Makes sure that somebody can log in there, before a person opens a page which shows that nobody can.
 *
 * @throws CommandError UNAVAILABLE when the service cannot be reached, FAILED_PRECONDITION when it has no login provider
 */
async function checkService(api: string, { provider }: LoginOptions): Promise<void> {
  // Services up to version 1.4 do not publish the names of their login providers.
  const { connections_supported: names } = await fetchDiscovery(api);
  if (provider !== undefined || !Array.isArray(names) || names.length > 0) return;
  throw new CommandError(
    Code.FailedPrecondition,
    [
      `${api} has no login provider, which a login with a browser needs`,
      `  its operator lists login providers in the file of ARBOR_LOGIN_PROVIDERS: ${api}/docs/first-hour.html#2-a-login-provider`,
      "  people of an organisation with a provider of its own name it: --identity-provider ORGANISATION, or the provider's uid",
    ].join("\n"),
  );
}

async function buildLoginRequest({
  identityProvider,
  connection,
  inviteFile,
  scope,
  cap,
}: LoginFlags): Promise<LoginOptions> {
  return {
    ...(identityProvider !== undefined && { provider: identityProvider }),
    ...(connection !== undefined && { connection }),
    ...(inviteFile !== undefined && { invite: await readInvite(inviteFile) }),
    ...(scope && { scope }),
    ...(cap && { cap: await parseCapabilities(cap) }),
  };
}

// The descriptors that know capabilities are loaded for this flag alone.
async function parseCapabilities(names: readonly string[]): Promise<string[]> {
  const { parseCapability } = await import("../iam/field-flags.js");
  return names.map((name) => parseCapability("--cap", name));
}

async function readInvite(file: string): Promise<string> {
  const invite = (await readFlagFileOrInput("--invite-file", file)).trim();
  if (invite !== "" && !/\s/.test(invite)) return invite;
  throw invalidFlag("--invite-file", "the file must hold one invite code");
}

async function showBrowser(url: string, mayOpen: boolean): Promise<void> {
  const how = mayOpen
    ? "A browser opens. If it does not, open this page"
    : "Open this page in a browser on this machine";
  process.stderr.write(`${how} to log in:\n\n  ${url}\n\n${WAITING}`);
  if (!mayOpen) return;
  const { default: open } = await import("open");
  // The person can open the page by hand.
  await open(url).catch(() => undefined);
}

function showHeadless(url: string, confirmation: string, invite: string | undefined): void {
  // The browser is on another machine, which has the invite from this address alone.
  if (invite !== undefined) {
    process.stderr.write("The address has the code of the invite: show it to nobody else, and keep it out of logs.\n");
  }
  const how = `Open this page in any browser, and enter the code ${confirmation} there`;
  process.stderr.write(`${how}:\n\n  ${url}\n\n${WAITING}`);
}
