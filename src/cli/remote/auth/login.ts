// `arbor auth login`: who the person is decides the service; what it answers is stored.
import { readFile, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { invalidArgument } from "../../../kernel/errors.js";
import { printable } from "../../printable.js";
import { type ApiFlags, apiOf } from "./api.js";
import { claimsOf } from "./claims.js";
import {
  changeCredentials,
  credentialsFile,
  type Login,
  readCredentials,
  type Workload,
  withLogin,
} from "./credentials-file.js";
import { workloadToken } from "./grants.js";
import { browserLogin } from "./login-browser.js";
import { headlessLogin } from "./login-headless.js";
import type { CliLoginRequest } from "./login-request.js";

/** How long a person may take, in milliseconds. */
const WAIT_MS = 600_000;

const POLL_MS = 2_000;

/** Those that say who logs in with an OIDC token. */
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
 * @throws ApiError INVALID_ARGUMENT for flags that do not go together
 */
export async function loginCommand(flags: LoginFlags): Promise<void> {
  const api = apiOf(flags);
  const workload = await workloadOf(flags);
  const file = credentialsFile();
  // So that nobody logs in for nothing when it is unfit.
  await readCredentials(file);
  const login = workload ? await workloadLogin(api, workload, flags) : await personLogin(api, flags);
  await changeCredentials(file, (now) => withLogin(now, api, login));
  const { subject = "somebody", expiresMs } = claimsOf(login.token);
  const until = expiresMs === undefined ? "" : `, with a token until ${new Date(expiresMs).toISOString()}`;
  process.stdout.write(`logged in at ${api} as ${printable(subject)}${until}\n`);
}

/**
 * The identity and the token file that flags name; undefined where they name none.
 *
 * @throws ApiError INVALID_ARGUMENT when one is there without the other, or the file is not
 */
export async function workloadOf({ identity, identityToken }: WorkloadFlags): Promise<Workload | undefined> {
  if (identity === undefined && identityToken === undefined) return undefined;
  if (identity === undefined || identityToken === undefined) {
    throw invalidArgument({ field: "--identity", description: "--identity and --identity-token go together" });
  }
  const tokenFile = resolve(identityToken);
  if (await stat(tokenFile).catch(() => undefined)) return { identity, tokenFile };
  throw invalidArgument({ field: "--identity-token", description: `there is no file ${tokenFile}` });
}

async function workloadLogin(api: string, workload: Workload, flags: LoginFlags): Promise<Login> {
  const { headless, identityProvider, connection, inviteFile, scope, cap } = flags;
  if ([headless, identityProvider, connection, inviteFile, scope, cap].some((flag) => flag !== undefined)) {
    const description = "an identity logs in with its token alone, and other flags are for people";
    throw invalidArgument({ field: "--identity", description });
  }
  return { token: await workloadToken(api, workload, api), workload };
}

async function personLogin(api: string, flags: LoginFlags): Promise<Login> {
  const { headless, browser } = flags;
  const loginRequest = await loginRequestOf(flags);
  if (headless) return headlessLogin(api, loginRequest, showHeadless, { pollMs: POLL_MS, waitMs: WAIT_MS });
  // An invite is a secret, and every user of the machine sees the arguments of a browser.
  const mayOpen = browser && loginRequest.invite === undefined;
  return browserLogin(api, loginRequest, (url) => showBrowser(url, mayOpen), WAIT_MS);
}

async function loginRequestOf({
  identityProvider,
  connection,
  inviteFile,
  scope,
  cap,
}: LoginFlags): Promise<CliLoginRequest> {
  return {
    ...(identityProvider !== undefined && { provider: identityProvider }),
    ...(connection !== undefined && { connection }),
    ...(inviteFile !== undefined && { invite: await inviteIn(inviteFile) }),
    ...(scope && { scope }),
    ...(cap && { cap }),
  };
}

async function inviteIn(file: string): Promise<string> {
  const invite = (file === "-" ? await text(process.stdin) : await readFile(file, "utf8")).trim();
  if (invite !== "" && !/\s/.test(invite)) return invite;
  throw invalidArgument({ field: "--invite-file", description: "the file must hold one invite code" });
}

async function showBrowser(url: string, mayOpen: boolean): Promise<void> {
  const how = mayOpen
    ? "A browser opens. If it does not, open this page"
    : "Open this page in a browser on this machine";
  process.stderr.write(`${how} to log in:\n\n  ${url}\n\n`);
  if (!mayOpen) return;
  const { default: open } = await import("open");
  // The page can be opened by hand.
  await open(url).catch(() => undefined);
}

function showHeadless(url: string, confirmation: string): void {
  process.stderr.write(`Open this page in any browser, and enter the code ${confirmation} there:\n\n  ${url}\n\n`);
}
