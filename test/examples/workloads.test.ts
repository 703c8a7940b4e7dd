// What other platforms run: the workflow of examples/github-actions, and the snippets of docs/workloads.md. Their commands run
// here with the token of the demo in place of the platform's; what only the platform can do is checked for its syntax.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { parse } from "yaml";
import { spawnSync } from "../support/child-process.js";
import { PROJECT, scriptArguments } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { blockOf, type Demo, missing, shell, startDemo } from "./follow.js";

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, { readonly steps: readonly { readonly run: string }[] }>>;
}

interface GitLab {
  readonly deploy: {
    readonly id_tokens: Readonly<Record<string, { readonly aud: string }>>;
    readonly variables: { readonly ARBOR_API: string };
    readonly script: readonly string[];
  };
}

const PAGE = "docs/workloads.md";
const ARBOR = [process.execPath, ...scriptArguments("src/main.ts")].map((part) => `'${part}'`).join(" ");
const NO_CURL = missing("examples/github-actions", "curl --version", "jq --version");
const NO_TERRAFORM = missing("the snippet for Terraform", "command -v terraform");

let demo: Demo;
before(async () => {
  demo = await startDemo();
});
after(() => demo?.stop());

const syntaxOf = (commands: string) => spawnSync("bash", ["-n"], { input: commands, encoding: "utf8" });

it("the workflow of GitHub Actions may get a token, and creates a group with it", { skip: NO_CURL }, async () => {
  console.log("examples/github-actions: the steps that get the token and push are not run, their syntax is checked");
  const workflow: Workflow = parse(readFileSync(join(PROJECT, "examples/github-actions/workflow.yml"), "utf8"));
  assert.equal(workflow.permissions["id-token"], "write");
  const commands = Object.values(workflow.jobs).flatMap(({ steps }) => steps.map(({ run }) => run));
  assert.equal(commands.length, 3);
  for (const command of commands) assert.equal(syntaxOf(command).stderr, "");
  // The control: half a command.
  assert.notEqual(syntaxOf("jq -n $(curl").status, 0);

  const RUNNER_TEMP = tempDir();
  const create = `cp "$TOKEN_FILE" "$RUNNER_TEMP/oidc-token"\n${commands[1]}`;
  const env = { ...demo.variables, RUNNER_TEMP, GITHUB_RUN_ID: "7" };
  const { stdout } = await shell(create, { env });
  assert.match(stdout, /"name":\s*"build 7"/);
  await assert.rejects(shell(create, { env: { ...env, GITHUB_RUN_ID: "NOT" } }), /name must match/);
});

it("the job of GitLab asks for a token for the service, and logs in with it", async () => {
  const { deploy }: GitLab = parse(blockOf(PAGE, "gitlab"));
  assert.equal(deploy.id_tokens.OIDC_TOKEN?.aud, deploy.variables.ARBOR_API);
  const [install, ...rest] = deploy.script;
  // The packages are installed by test/pack.
  assert.equal(install, 'npm install --global "$ARBOR_CLI"');
  const HOME = tempDir();
  const script = rest.join("\n").replaceAll("/tmp/oidc-token", join(HOME, "oidc-token"));
  assert.ok(script.includes(HOME));
  const commands = `arbor() { ${ARBOR} "$@"; }\nOIDC_TOKEN=$(cat "$TOKEN_FILE")\n${script}`;
  const { stdout } = await shell(commands, { env: { ...demo.variables, HOME, XDG_CONFIG_HOME: HOME } });
  assert.match(stdout, /production/);
});

it("the snippet for Terraform is one", { skip: NO_TERRAFORM }, () => {
  console.log("the snippet for Terraform is not run: its syntax is checked");
  const format = (input: string) => spawnSync("terraform", ["fmt", "-check", "-"], { input, encoding: "utf8" });
  const snippet = blockOf(PAGE, "terraform");
  const { status, stderr } = format(snippet);
  assert.equal(status, 0, stderr);
  // The control: a bracket is missing.
  assert.notEqual(format(snippet.replace("}", "")).status, 0);
});
