// The presets of `arbor iam identities create`, and their flags.
import { type Command, Option } from "commander";
import { invalidFlag } from "../../../errors.js";
import { buildkite } from "./buildkite.js";
import { githubActions } from "./github.js";
import { gitlabCi } from "./gitlab.js";
import { kubernetes } from "./kubernetes.js";
import type { Preset, PresetValues } from "./preset.js";

export const presets: readonly Preset[] = [githubActions, gitlabCi, kubernetes, buildkite];

/** The flags of all presets, each with its placeholder, if it has a value, and its description. */
const flags: Readonly<Record<string, readonly [placeholder: string, description: string]>> = {
  "github-repo": ["owner/repo", "accept jobs of GitHub Actions in this repository"],
  "github-url": ["url", "address of a GitHub Enterprise; https://github.com unless given"],
  "repository-id": ["number", "id of the repository, with --owner-id; GitHub is asked for both unless given"],
  "owner-id": ["number", "id of the owner of the repository"],
  workflow: ["name", "accept jobs of this workflow alone, such as deploy.yml"],
  "gitlab-project": ["path", "accept jobs of GitLab CI in this project, such as octocat/my-repo"],
  "gitlab-url": ["url", "address of a GitLab of your own; https://gitlab.com unless given"],
  "project-id": ["number", "id of the project; GitLab is asked for it unless given"],
  "ref-protected": ["", "accept jobs on protected branches and tags of GitLab alone"],
  ref: ["ref", "accept jobs on this branch alone, or refs/tags/TAG; * stands for any text (GitHub, GitLab, Buildkite)"],
  environment: ["name", "accept jobs in this environment alone (GitHub, GitLab)"],
  "kubernetes-issuer": ["url", "accept tokens of a service account of the cluster with this issuer"],
  namespace: ["name", "namespace of the service account"],
  "service-account": ["name", "name of the service account"],
  "service-account-id": ["text", "uid of the service account, so that a new one of the same name does not match"],
  "buildkite-pipeline": ["path", "accept jobs of this Buildkite pipeline, such as acme/deploy"],
  "organization-id": ["uuid", "id of the organisation at Buildkite, for jobs whose tokens have it"],
  "pipeline-id": ["uuid", "id of the pipeline, for jobs whose tokens have it"],
  step: ["key", "accept jobs of the step with this key alone (Buildkite)"],
};

/** A flag of presets. */
export class PresetFlag extends Option {}

/** Adds the flags of all presets. */
export function addPresetFlags(command: Command): void {
  for (const [name, [placeholder, description]] of Object.entries(flags)) {
    const value = placeholder === "" ? "" : ` <${placeholder}>`;
    command.addOption(new PresetFlag(`--${name}${value}`, description).helpGroup("Tokens of a platform:"));
  }
}

/** A preset, and the values of its flags. */
export interface ChosenPreset {
  readonly preset: Preset;
  readonly given: PresetValues;
}

/**
 * Finds the preset that the flags choose.
 *
 * @returns undefined when no flag of presets is given
 * @throws CommandError INVALID_ARGUMENT for flags of no preset, of several or of another one, for one that is missing, and for
 * an empty text, as of a variable that is not set, which would accept more tokens than was meant
 */
export function choosePreset(
  { options }: Command,
  values: Readonly<Record<string, unknown>>,
): ChosenPreset | undefined {
  const given = Object.fromEntries(
    options
      .filter((option) => option instanceof PresetFlag)
      .map((option) => [option.name(), values[option.attributeName()]] as const)
      .filter(([, value]) => value !== undefined),
  ) as PresetValues;
  const names = Object.keys(given);
  const [first] = names;
  if (first === undefined) return undefined;
  const chosen = presets.filter(({ chosenBy }) => given[chosenBy] !== undefined);
  const [preset, second] = chosen;
  if (preset === undefined) {
    const choices = presets.filter((one) => flagsOf(one).includes(first)).map(({ chosenBy }) => `--${chosenBy}`);
    throw invalidFlag(`--${first}`, `needs ${choices.join(" or ")}`);
  }
  if (second !== undefined) throw invalidFlag(`--${second.chosenBy}`, `cannot be combined with --${preset.chosenBy}`);
  const foreign = names.find((name) => !flagsOf(preset).includes(name));
  if (foreign !== undefined) throw invalidFlag(`--${foreign}`, `cannot be combined with --${preset.chosenBy}`);
  const missing = preset.requires?.find((name) => given[name] === undefined);
  if (missing !== undefined) throw invalidFlag(`--${missing}`, `is required with --${preset.chosenBy}`);
  const empty = names.find((name) => given[name] === "");
  if (empty !== undefined) throw invalidFlag(`--${empty}`, "is empty, as a variable that is not set");
  return { preset, given };
}

function flagsOf({ chosenBy, requires = [], takes }: Preset): readonly string[] {
  return [chosenBy, ...requires, ...takes];
}
