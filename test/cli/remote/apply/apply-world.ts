// A service with a person who creates organisations, and `arbor apply` by their token.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildFile } from "../../../../src/cli/remote/apply/build-file.js";
import { kindNames } from "../../../../src/cli/remote/apply/model.js";
import { parseState } from "../../../../src/cli/remote/apply/parse.js";
import { makePlan } from "../../../../src/cli/remote/apply/plan.js";
import { type ReadOptions, readActual } from "../../../../src/cli/remote/apply/read.js";
import { runPlan } from "../../../../src/cli/remote/apply/run.js";
import type { MethodCall } from "../../../../src/cli/remote/method-call.js";
import { withSession } from "../../../../src/cli/remote/session.js";
import { type Rest, restAs } from "../../../contract/rest.js";
import { type Finished, runCommand } from "../../../support/command.js";
import { type Harness, startHarness } from "../../../support/harness.js";
import { tempDir } from "../../../support/temp-dir.js";

export const OWNER = "ada@acme.example";

export interface ApplyWorld {
  readonly harness: Harness;
  /** The uid of the person. */
  readonly owner: string;
  readonly rest: Rest;
  /** Creates an organisation, and returns its uid. */
  organisation(name: string): Promise<string>;
  /** Writes a file, and returns its path. */
  file(content: unknown): string;
  /** Runs `arbor` as the person. */
  arbor(...args: readonly string[]): Promise<Finished>;
  /** Runs `work` with what calls the service as the person. */
  withCall<T>(work: (call: MethodCall) => Promise<T>): Promise<T>;
  /** What `arbor export -o json` writes. */
  exported(organisation: string): Promise<Record<string, unknown>>;
  stop(): Promise<void>;
}

export async function startApplyWorld(): Promise<ApplyWorld> {
  const harness = await startHarness({ quotas: "roots=1000" });
  const { uid: owner, token } = await harness.identity({ email: OWNER, name: "Ada" });
  const { url } = harness;
  const rest = restAs(url, token);
  let files = 0;
  const directory = tempDir();
  const arbor: ApplyWorld["arbor"] = (...args) => runCommand(args, { ARBOR_API: url, ARBOR_TOKEN: token });
  return {
    harness,
    owner,
    rest,
    async organisation(name) {
      const { status, json, text } = await rest("POST", "/groups/", { name });
      if (status !== 200) throw new Error(text);
      return String(json?.uid);
    },
    file(content) {
      const path = join(directory, `${files++}.yaml`);
      writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
      return path;
    },
    arbor,
    async withCall(work) {
      let result: { readonly value: Awaited<ReturnType<typeof work>> } | undefined;
      const path = join(directory, "token");
      writeFileSync(path, token, { mode: 0o600 });
      await withSession({ api: url, tokenFile: path, output: "json" }, async ({ call }) => {
        result = { value: await work(call) };
      });
      if (result === undefined) throw new Error("the work has ended without a result");
      return result.value;
    },
    async exported(organisation) {
      const { code, stdout, stderr } = await arbor("export", organisation, "-o", "json");
      if (code !== 0) throw new Error(stderr);
      return JSON.parse(stdout) as Record<string, unknown>;
    },
    stop: () => harness.stop(),
  };
}

/** Plans what a file would change, with `--prune` unless said otherwise, and what a file of the organisation would be now. */
export async function planBy(
  call: MethodCall,
  organisation: string,
  content: unknown,
  { needsConditions = () => true, isPrune = true }: Partial<ReadOptions> = {},
) {
  const desired = parseState("file", JSON.stringify(content));
  const actual = await readActual(call, organisation, { kinds: new Set(kindNames), needsConditions, isPrune });
  return { actual, plan: makePlan(desired, actual, { isPrune, nowMs: Date.now() }), file: buildFile(actual) };
}

/** Applies a file with `--prune`, by calls of one's own. */
export async function applyBy(call: MethodCall, organisation: string, content: unknown): Promise<void> {
  const { plan, actual } = await planBy(call, organisation, content);
  await runPlan(call, plan, actual, async () => {});
}
