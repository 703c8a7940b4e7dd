// `arbor bootstrap`: creates an organisation, and says how its owner gets in.
import type { Settings } from "../../config/config.js";
import { type Bootstrap, type BootstrapResult, bootstrap } from "../../iam/operator/bootstrap.js";
import { issueToken } from "../../issuer/tokens.js";
import { invalidArgument } from "../../kernel/errors.js";
import { builtinRoleUid, randomIds } from "../../kernel/ids.js";
import { Code, CommandError } from "../errors.js";
import { escapeControls } from "../output/terminal.js";
import { createSecretFile, type SecretFile } from "../shared-file.js";
import { HOUR_S, print, readOrigin, withInstallation } from "./host.js";
import { describeExisting } from "./members.js";

interface BootstrapOptions {
  readonly org: string;
  readonly ownerIssuer?: string;
  readonly ownerSubject?: string;
  readonly ownerEmail?: string;
  readonly data?: string;
  readonly json?: boolean;
  /** The file to write the token to, in place of standard output. */
  readonly write?: string;
}

type Owner = Pick<Bootstrap, "owner" | "awaitedOwner">;

interface NextSteps {
  readonly created: BootstrapResult;
  readonly owner: Owner;
  readonly baseUrl: string;
  /** The flags that the command was given for the installation. */
  readonly flags: string;
  /** Whether the settings name login providers already, which a server with the same settings then has. */
  readonly hasProviders: boolean;
}

/** `arbor bootstrap` */
export async function bootstrapCommand(settings: Settings, options: BootstrapOptions): Promise<void> {
  const owner = parseOwner(options);
  const { org, data, write } = options;
  const flags = data === undefined ? "" : ` --data ${data}`;
  let file: SecretFile | undefined;
  await withInstallation(settings, "create", async (host) => {
    const existing = await host.store.read((tx) => describeExisting(tx, org, flags));
    if (existing.length > 0) {
      process.stderr.write(`${existing.join("\n")}\n`);
      const advice = "nothing was changed, and the lines above say how to go on";
      throw new CommandError(Code.FailedPrecondition, `the organisation ${org} exists already: ${advice}`);
    }
    // Before the organisation: where the file cannot be created, that is not created either.
    file = write === undefined ? undefined : createSecretFile("--write", write);
    const created = await host.store.write((tx) => bootstrap(tx, { org, ...owner }, randomIds, host.clock()));
    const { baseUrl, issuer: hostIssuer } = await readOrigin(host, settings);
    const token = await issueToken(
      { issuer: hostIssuer, audience: baseUrl, identity: created.identity, lifeS: HOUR_S, atMs: host.clock() },
      host.keys,
      randomIds,
    );
    file?.write(`${JSON.stringify({ ...created, token, audience: baseUrl }, null, 2)}\n`);
    const result = file === undefined ? { ...created, token } : created;
    if (options.json) print(JSON.stringify({ ...result, audience: baseUrl }));
    else for (const [name, value] of Object.entries(result)) print(`${name}: ${value}`);
    if (file !== undefined) process.stderr.write(`${escapeControls(`the token is in ${file.path}`)}\n`);
    noteNextSteps({ created, owner, baseUrl, flags, hasProviders: settings.loginProviders !== undefined });
  }).finally(() => file?.close());
}

function parseOwner({ ownerIssuer: issuer, ownerSubject: subject, ownerEmail: email }: BootstrapOptions): Owner {
  const reject = (rule: string) => invalidArgument({ field: "owner", subject: "", rule });
  if (email !== undefined) {
    if (subject !== undefined) throw reject("--owner-subject and --owner-email name two owners: give one of them");
    return { awaitedOwner: { email, issuer } };
  }
  if ((issuer === undefined) !== (subject === undefined)) {
    throw reject("--owner-issuer and --owner-subject go together");
  }
  return issuer !== undefined && subject !== undefined ? { owner: { issuer, subject } } : {};
}

// Short, because docs/first-hour.md has the whole way.
function noteNextSteps({ created, owner, baseUrl, flags, hasProviders }: NextSteps): void {
  const { group, identity } = created;
  const login = `arbor auth login --api ${baseUrl}`;
  const invite = `ARBOR_TOKEN=… arbor iam group-invites create --api ${baseUrl} --parent ${group} --role ${builtinRoleUid("owner")} --ttl 1d --single-use`;
  const people =
    owner.awaitedOwner !== undefined
      ? [`log in:     ${login}   (${owner.awaitedOwner.email} becomes an owner, within 7 days)`]
      : owner.owner !== undefined
        ? [`log in:     ${login}`]
        : [`invite:     ${invite}`, `log in:     ${login} --invite-file FILE   (with the code of the invite)`];
  const providers = hasProviders ? "" : ` --login-providers FILE   (${baseUrl}/docs/login.html, once it runs)`;
  const lines = [
    `start:      arbor serve${flags}${providers}`,
    ...people,
    `use token:  ARBOR_API=${baseUrl} ARBOR_TOKEN=… arbor iam groups list   (for an hour)`,
    `new token:  arbor admin token --identity ${identity}${flags}`,
    `all steps:  ${baseUrl}/docs/first-hour.html`,
  ];
  // A server accepts only tokens for its own URL, which follows from settings that this command may not have been given.
  process.stderr.write(`the token is for the service at ${baseUrl}, as a server with the same settings has it\n`);
  process.stderr.write(`next:\n${lines.map((line) => `  ${escapeControls(line)}\n`).join("")}`);
}
