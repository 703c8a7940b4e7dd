// The login providers of the service, which the operator lists in a file (docs/login.md).
import { readFileSync } from "node:fs";
import { describeContent, describeReadError, readSecretFile } from "./files.js";

/** An OpenID Provider that the operator trusts to authenticate people of all organisations. */
export interface LoginProvider {
  /** The name in requests, such as `connection=google-oauth2`. */
  readonly name: string;
  /** The name on pages. */
  readonly title: string;
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for public clients. */
  readonly clientSecret: string | undefined;
  readonly scopes: readonly string[];
}

const KEYS = ["name", "title", "issuer", "clientId", "clientSecretFile", "scopes"];
const DEFAULT_SCOPES = ["openid", "email", "profile"];
const NAME = /^[a-z0-9][a-z0-9._-]{0,62}$/;
/** RFC 6749, section 3.3. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/;
const MAX_SECRET = 1024;
/** Those of Entra ID for several tenants, whose tokens have the issuer of their tenant. */
const SHARED_ISSUER = /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers)\//;

/**
 * Reads the list of login providers.
 *
 * @param file the path of a JSON list; undefined means none
 * @throws Error with every problem of the list and of the files of client secrets, which only their owner may be able
 * to read
 */
export function readLoginProviders(file: string | undefined): readonly LoginProvider[] {
  if (file === undefined) return [];
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw new Error(`--login-providers: ${describeReadError(file, cause)}`, { cause });
  }
  try {
    return parseLoginProviders(text);
  } catch (error) {
    const problems = describeContent(file, error as Error);
    throw new Error(problems.map((problem) => `--login-providers: ${problem}`).join("\n"));
  }
}

/**
 * Parses the list of login providers and reads the files of their secrets.
 *
 * @throws Error with a line for each problem
 */
export function parseLoginProviders(text: string): readonly LoginProvider[] {
  const problems: string[] = [];
  const providers = parseEntries(text).map((entry, i) => parseProvider(entry, `provider ${i + 1}`, problems));
  for (const key of ["name", "issuer"] as const) {
    const values = providers.map((provider) => provider?.[key]).filter((value) => value !== undefined);
    for (const value of new Set(values.filter((value, i) => values.indexOf(value) !== i))) {
      problems.push(`two providers have the ${key} ${value}`);
    }
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return providers.filter((provider) => provider !== undefined);
}

function parseEntries(text: string): readonly unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("must hold JSON");
  }
  if (!Array.isArray(value)) throw new Error("must be a JSON list");
  return value;
}

function parseProvider(entry: unknown, location: string, problems: string[]): LoginProvider | undefined {
  const before = problems.length;
  if (typeof entry !== "object" || entry === null || Array.isArray(entry)) {
    problems.push(`${location} must be an object`);
    return undefined;
  }
  const given = entry as Record<string, unknown>;
  for (const key of Object.keys(given)) if (!KEYS.includes(key)) problems.push(`${location}: ${key} is not a setting`);
  const text = (key: string, isRight: (value: string) => boolean, rule: string): string => {
    const value = given[key];
    if (typeof value === "string" && isRight(value)) return value;
    problems.push(`${location}: ${key} must be ${rule}`);
    return "";
  };
  const provider = {
    name: text("name", (value) => NAME.test(value), "1 to 63 of a-z, 0-9, dot, dash and underscore"),
    title: text("title", isTitle, "1 to 64 printable characters"),
    issuer: text("issuer", isIssuer, "an http or https URL in its usual spelling, without user, query or fragment"),
    clientId: text("clientId", (value) => /^[\x21-\x7e]{1,512}$/.test(value), "1 to 512 characters of ASCII"),
    clientSecret:
      given.clientSecretFile === undefined ? undefined : readSecret(given.clientSecretFile, location, problems),
    scopes: parseScopes(given.scopes, location, problems),
  };
  if (SHARED_ISSUER.test(provider.issuer)) {
    problems.push(
      `${location}: issuer must name one tenant, as the tokens do: https://login.microsoftonline.com/TENANT-ID/v2.0`,
    );
  }
  return problems.length === before ? provider : undefined;
}

function isTitle(text: string): boolean {
  return /^[^\p{C}\p{Zl}\p{Zp}]{1,64}$/u.test(text) && text.trim() === text;
}

// The issuer is compared byte by byte with the provider's metadata, so it has one spelling.
function isIssuer(text: string): boolean {
  if (text.length > 255 || !URL.canParse(text) || /[?#]/.test(text)) return false;
  const { href, protocol, username, password } = new URL(text);
  return (href === text || href === `${text}/`) && /^https?:$/.test(protocol) && username === "" && password === "";
}

function parseScopes(given: unknown, location: string, problems: string[]): readonly string[] {
  if (given === undefined) return DEFAULT_SCOPES;
  const scopes = Array.isArray(given) ? (given as unknown[]) : [];
  if (scopes.includes("openid") && scopes.every((one) => typeof one === "string" && SCOPE.test(one))) {
    return scopes as string[];
  }
  problems.push(`${location}: scopes must be a list of scopes, openid among them`);
  return [];
}

function readSecret(file: unknown, location: string, problems: string[]): string {
  const wrong = (rule: string) => {
    problems.push(`${location}: clientSecretFile: ${rule}`);
    return "";
  };
  if (typeof file !== "string" || !file.startsWith("/")) return wrong("must be an absolute path");
  let secret: string;
  try {
    secret = readSecretFile(file).trim();
  } catch (error) {
    return wrong((error as Error).message);
  }
  const isSecret = secret.length <= MAX_SECRET && /^[\x20-\x7e]+$/.test(secret);
  return isSecret ? secret : wrong(`${file} must hold one line of ASCII`);
}
