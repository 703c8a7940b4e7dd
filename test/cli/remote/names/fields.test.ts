// Every flag and argument that takes a uid takes names: found in the command tree, so that a new one is tested without being
// listed.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type DescField, type DescMethod, ScalarType } from "@bufbuild/protobuf";
import type { Argument, Command, Option } from "commander";
import { createProgram } from "../../../../src/cli/program.js";
import { readMethods } from "../../../../src/cli/remote/api/catalogue.js";
import { FieldArgument, FieldFlag } from "../../../../src/cli/remote/iam/field-flags.js";
import { formatMethod, getMethods } from "../../../../src/cli/remote/methods.js";
import { findKinds } from "../../../../src/cli/remote/names/fields.js";
import { tempDir } from "../../../support/temp-dir.js";
import { type CliWorld, startCliWorld } from "../iam/cli-world.js";

/** A flag or an argument of a command. */
interface Parameter {
  readonly path: readonly string[];
  readonly command: Command;
  readonly at: Option | Argument;
}

/** A name that nothing has. */
const ABSENT = "no-such-name";

/** Flags that take a uid and no names that are looked up, each with the reason. */
const exempt: Readonly<Record<string, string>> = {
  "auth login --identity": "looked up where somebody is logged in, tested in test/cli/remote/auth/login.test.ts",
  "auth login --identity-provider": "the service itself takes the name of the organisation",
  "auth login --scope": "the service itself takes the name of a verified organisation",
  "auth configure-docker --identity": "as auth login --identity",
  "login --identity": "as auth login --identity",
  "login --identity-provider": "as auth login --identity-provider",
  "login --scope": "as auth login --scope",
  "admin organisations list --page-token": "a position in a list, as the page before printed it",
  "admin identities list --page-token": "a position in a list, as the page before printed it",
  ...Object.fromEntries(
    ["serve", "config print", "config check"].map((command) => [
      `${command} --catalog-group`,
      "a setting, which is read before there is a database",
    ]),
  ),
  "admin unbind uid": "role bindings have no names",
  "admin identities list --org": "a name, tested in test/cli/host/members.test.ts",
};

/** The names of text fields that hold no uids of resources. */
const PLAIN: ReadonlySet<string> = new Set(
  `account acknowledgement active_tags advisory_id advisory_ids aliases apko_overlay arch architecture arn arn_pattern
  artifact_architecture artifact_architectures artifact_name artifact_names artifact_type artifact_types audience
  audience_pattern audiences author aws_account bundles cap chart client_ids code company component_id component_location
  component_locations component_name component_names component_type component_types component_version description digest
  doc_id document_ids email email_unverified event_authors event_id event_reviewers exclude_event_authors external_group_id external_id
  family_name fixed_version given_name grype_db_built grype_db_checksum hubspot_utk issue issuer issuer_keys
  issuer_pattern job_title key_id latest_form_submit_url latest_internal_referring_url legacyAdvisoryID
  legacy_advisory_ids name new_location note order_by origin page_token patched_versions previous_location product
  project_id project_number query repo request_id reviewer scanner scanner_version sink source subject_pattern
  subpackage_name tenant_id type user_id user_id_pattern utm_campaign utm_content utm_medium utm_source utm_term user_name
  artifact_version cpe_found cpe_searched client_id client_secret additional_scopes content claims claim_patterns
  amazon google azure providers packages runtime_repositories environment annotations run_as groups_claim etag`.split(
    /\s+/,
  ),
);

/** Text fields that hold no uids of resources, although others of the same name do. */
const PLAIN_HERE: ReadonlySet<string> = new Set([
  "ClaimMatch.subject",
  "StaticKeys.subject",
  "LookupIdentityRequest.subject",
  "GetEventRequest.id",
  "AdvisoryEvent.id",
  "CommandOverride.command",
  "TagSelector.tags",
  // The service itself takes a name, and prefers the nearest overlay of it.
  "CreateOverlayBindingRequest.overlay",
]);

let world: CliWorld;
let program: Command;
let methods: ReadonlyMap<string, DescMethod>;
let dataDir: string;
before(async () => {
  world = await startCliWorld();
  dataDir = tempDir();
  const made = await world.arbor({}, "bootstrap", "--org", "host.example", "--data", dataDir);
  assert.equal(made.code, 0, made.stderr);
  program = await createProgram();
  methods = new Map(readMethods().map((method) => [formatMethod(method), method]));
});
after(() => world?.stop());

function* parametersOf(command: Command, path: readonly string[] = []): Generator<Parameter> {
  for (const at of [...command.registeredArguments, ...command.options.filter(({ hidden }) => !hidden)])
    yield { path, command, at };
  for (const child of command.commands) yield* parametersOf(child, [...path, child.name()]);
}

function fieldOf({ at }: Parameter): DescField | undefined {
  return at instanceof FieldFlag || at instanceof FieldArgument ? at.field : undefined;
}

function isText(field: DescField): boolean {
  if (field.fieldKind === "list") return field.listKind === "scalar" && field.scalar === ScalarType.STRING;
  if (field.fieldKind === "map") return field.mapKind === "scalar" && field.scalar === ScalarType.STRING;
  return field.fieldKind === "scalar" && field.scalar === ScalarType.STRING;
}

function methodOf({ command }: Parameter): DescMethod | undefined {
  const [name = ""] = getMethods(command);
  return methods.get(name);
}

/** Whether a value is a uid: by the table for fields, and by its placeholder for others. */
function takesUid(parameter: Parameter): boolean {
  const [field, method] = [fieldOf(parameter), methodOf(parameter)];
  if (field !== undefined) return method !== undefined && findKinds(method, field) !== undefined;
  const { at } = parameter;
  return "flags" in at ? /<(?:uid|uid-or-name|group)>/.test(at.flags) : ["uid", "identity"].includes(at.name());
}

function nameOf({ path, at }: Parameter): string {
  return [...path, "long" in at ? at.long : at.name()].join(" ");
}

/** The fields of text that are neither in the table nor known to hold other texts. */
function findUnknown(plain: ReadonlySet<string>): string[] {
  const unknown = new Set<string>();
  for (const parameter of parametersOf(program)) {
    const [field, method] = [fieldOf(parameter), methodOf(parameter)];
    if (field === undefined || method === undefined || !isText(field) || takesUid(parameter)) continue;
    const name = `${field.parent.name}.${field.name}`;
    if (!plain.has(field.name) && !PLAIN_HERE.has(name)) unknown.add(name);
  }
  return [...unknown];
}

// The only command that needs a file sets conditions.
function writeConditions(): string {
  const file = join(tempDir(), "conditions.yaml");
  writeFileSync(file, "- { path: [a], exists: true }\n");
  return file;
}

/** A value that a parameter takes and that is not looked up. */
function exampleOf(parameter: Parameter): string {
  if (takesUid(parameter)) return world.root;
  const { at } = parameter;
  if (at.argChoices !== undefined) return at.argChoices[0] ?? "";
  if ("flags" in at && at.flags.includes("<purpose>")) return "audit";
  if ("flags" in at && at.flags.includes("<file>")) return writeConditions();
  if (at.name() === "ttl") return "1h";
  if (at.name() === "method") return "GroupsService/ListGroups";
  return fieldOf(parameter)?.scalar === ScalarType.INT32 ? "1" : "repos=5";
}

/** The arguments of a command in which one parameter has the name that nothing has. */
function buildArguments(tested: Parameter): string[] {
  const { path, command, at } = tested;
  const pick = (one: Parameter["at"]) => {
    if (one !== at) return exampleOf({ ...tested, at: one });
    return fieldOf(tested)?.fieldKind === "map" ? `ingester=${ABSENT}` : ABSENT;
  };
  const isNeeded = (one: Parameter["at"]) => one === at || path.join(" ") === "iam identities revoke-tokens";
  const values = command.registeredArguments.filter((one) => one.required || isNeeded(one)).map(pick);
  const flags = command.options.filter((one) => one.mandatory || one === at || one.long === "--update-mask");
  const given = flags.flatMap((one) => [one.long ?? "", pick(one)]);
  const has = (long: string) => command.options.some((one) => one.long === long);
  if (has("--update-mask")) given[given.indexOf("--update-mask") + 1] = "name";
  if (has("--yes")) given.push("--yes");
  if (path.join(" ") === "audit export" && !given.includes("--scope") && !given.includes("--org")) {
    given.push("--scope", world.root);
  }
  if (path.join(" ") === "access subjects" && !given.includes("--group") && !given.includes("--resource")) {
    given.push("--group", world.root);
  }
  if (path.join(" ") === "iam identities test-claims") given.push("--claims-file", world.file("{}"));
  if (path.join(" ") === "events deliveries redeliver") given.push("--since", "1h");
  const isLocal = has("--data") && !given.includes("--scope");
  if (isLocal) given.push("--data", dataDir);
  return [...path, ...values, ...given];
}

const rejected = new RegExp(
  `is named ${ABSENT} where you have roles|has the name ${ABSENT}: |${ABSENT} is no uid, and .* have no names` +
    `|${ABSENT} must be a uid, or a repo, a colon and a tag`,
);

describe("flags and arguments that take uids", () => {
  it("are known by the table of fields, or hold other texts", () => {
    assert.deepEqual(findUnknown(PLAIN), []);
  });

  it("(the control) are reported where neither is so", () => {
    const without = new Set([...PLAIN].filter((name) => name !== "description"));
    assert.ok(findUnknown(without).includes("Group.description"));
  });

  it("look names up, each of them", async () => {
    const tested = [...parametersOf(program)].filter((one) => takesUid(one) && !(nameOf(one) in exempt));
    assert.ok(tested.length > 100, `${tested.length}`);
    const missing: string[] = [];
    for (const parameter of tested) {
      const args = buildArguments(parameter);
      const { code, stdout, stderr } = await world.arbor({}, ...args);
      if (code === 0 || !rejected.test(stderr)) missing.push(`${args.join(" ")}: ${code} ${stdout}${stderr}`);
    }
    assert.deepEqual(missing, []);
  });

  it("(the control) are noticed where names are not looked up", async () => {
    const { code, stderr } = await world.iam("groups", "list", "--name", ABSENT);
    assert.deepEqual([code, rejected.test(stderr)], [0, false]);
  });

  it("that are exempt exist", () => {
    const names = new Set([...parametersOf(program)].map(nameOf));
    assert.deepEqual(
      Object.keys(exempt).filter((name) => !names.has(name)),
      [],
    );
  });
});
