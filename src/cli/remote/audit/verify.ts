// `arbor audit verify` and `arbor audit jwks` over the API.
import type { JsonObject } from "@bufbuild/protobuf";
import type { Link } from "../../../audit/chain.js";
import { invalidFlag } from "../../errors.js";
import { findFlagFile, readFlagFile } from "../../flag-file.js";
import { findWarning, formatReport } from "../../output/audit-log.js";
import { escapeControls } from "../../output/terminal.js";
import { replaceFile } from "../../shared-file.js";
import { withSession } from "../session.js";
import { readAuditJwks, verifyRemoteLog } from "./chain-client.js";

export interface VerifyFlags {
  readonly scope: string;
  /** A file with the public keys that may sign the log. */
  readonly jwks?: string;
  /** An entry that the log had before: its number, a colon and its hash. */
  readonly expectHead?: string;
  /** A file that remembers the end of the log. */
  readonly state?: string;
  readonly api?: string;
  readonly tokenFile?: string;
}

/** The content of a state file. */
interface RememberedState extends Link {
  readonly organization: string;
}

/**
 * `arbor audit verify --scope`: prints the state of the log, and its end as `--expect-head` takes it.
 *
 * @throws CommandError INVALID_ARGUMENT for a flag or a file that cannot be used; the error of the service
 * @throws Error when the log is not what was sealed, or not the one that was there before
 */
export async function verifyLogOverApi(flags: VerifyFlags): Promise<void> {
  const { state: file, expectHead, api, tokenFile } = flags;
  if (file !== undefined && expectHead !== undefined) throw invalidFlag("--expect-head", "goes without --state");
  const jwks = flags.jwks === undefined ? undefined : await readJwks(flags.jwks);
  const remembered = file === undefined ? undefined : await readState(file);
  const head = expectHead === undefined ? remembered : parseHead(expectHead);
  await withSession({ output: "table", ...(api && { api }), ...(tokenFile && { tokenFile }) }, async (session) => {
    // Rows have the uid of their organisation.
    const scope = await session.names.find(["group"], flags.scope);
    if (remembered !== undefined && remembered.organization !== scope) {
      throw invalidFlag("--state", `${file} is of the organisation ${remembered.organization}`);
    }
    // The service says first which rows are not sealed, and then sends the entries, however long that takes.
    const beganMs = Date.now();
    const report = await verifyRemoteLog(session.call, scope, {
      jwks,
      head: head && { seq: head.seq, hash: head.hash },
    });
    await session.output.write(`${scope}: ${formatReport(report)}\n`);
    const warning = findWarning(report, beganMs);
    if (warning !== undefined) process.stderr.write(`arbor: warning: ${scope}: ${warning}\n`);
    if (report.fault !== undefined) {
      const { seq, what } = report.fault;
      throw new Error(`the audit log is not what was sealed\n${scope}: seq ${seq}: ${escapeControls(what)}`);
    }
    if (report.head === undefined) return;
    await session.output.write(`head: ${report.head.seq}:${report.head.hash}\n`);
    if (file === undefined) return;
    if (head === undefined) {
      process.stderr.write(`arbor: ${file} is new: that the end was cut off before now cannot be found\n`);
    }
    const state: RememberedState = { organization: scope, ...report.head };
    await replaceFile(file, `${JSON.stringify(state)}\n`, 0o600);
  });
}

/** `arbor audit jwks --scope`: prints the public keys of the audit log, for `--jwks`. */
export async function printJwks({ scope, api, tokenFile }: VerifyFlags): Promise<void> {
  await withSession({ output: "table", ...(api && { api }), ...(tokenFile && { tokenFile }) }, async (session) => {
    await session.output.write(`${JSON.stringify(await readAuditJwks(session.call, scope), undefined, 2)}\n`);
  });
}

const HEAD = /^(\d{1,15}):([A-Za-z0-9_-]{43})$/;

function parseHead(text: string): Link {
  const [, seq, hash] = HEAD.exec(text) ?? [];
  if (seq !== undefined && hash !== undefined) return { seq: Number(seq), hash };
  throw invalidFlag("--expect-head", "must be what `arbor audit verify --scope` printed as head");
}

async function readState(file: string): Promise<RememberedState | undefined> {
  const text = await findFlagFile("--state", file);
  if (text === undefined) return undefined;
  const { organization, seq, hash } = parseObject("--state", file, text);
  if (
    typeof organization !== "string" ||
    typeof seq !== "number" ||
    typeof hash !== "string" ||
    !HEAD.test(`${seq}:${hash}`)
  ) {
    throw invalidFlag("--state", `${file} is not a file that this command wrote`);
  }
  return { organization, seq, hash };
}

async function readJwks(file: string): Promise<JsonObject> {
  const jwks = parseObject("--jwks", file, await readFlagFile("--jwks", file));
  const isKey = (key: unknown) => typeof key === "object" && key !== null && (key as JsonObject).kty === "EC";
  if (Array.isArray(jwks.keys) && jwks.keys.some(isKey)) return jwks;
  throw invalidFlag("--jwks", `${file} has no key; \`arbor audit jwks\` prints such a file`);
}

function parseObject(flag: string, file: string, text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // The error of the parser would repeat the content.
  }
  throw invalidFlag(flag, `${file} is not a JSON object`);
}
