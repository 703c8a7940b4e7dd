// GitHub Actions: jobs of one repository, by its id and its name. Subjects of GitHub have one of two forms, with and without
// the ids of owner and repository; both have the same ids in other claims.
import { Code, CommandError, invalidFlag } from "../../../errors.js";
import { fetchPlatform, readName, readNumber } from "./forge.js";
import {
  beginsWith,
  type ConditionInit,
  equals,
  formatAddress,
  formatRef,
  isNoneOf,
  type Preset,
  type PresetValues,
  quotePattern,
  readAddress,
  readId,
  readRef,
  readText,
  resembles,
  textOf,
  toPattern,
} from "./preset.js";

/** A repository as GitHub names it now. */
export interface Repository {
  /** With its owner, such as `octocat/my-repo`. */
  readonly name: string;
  readonly id: string;
  readonly ownerId: string;
}

/** The addresses of a GitHub. */
export interface GitHub {
  readonly url: string;
  readonly api: string;
  /** The issuer of the tokens of its jobs. */
  readonly issuer: string;
}

export const GITHUB = "https://github.com";
const NAME = /^[A-Za-z0-9_-]+\/[A-Za-z0-9._-]+$/;

/** The events of pull requests, which people who may not write to the repository cause. */
const PULL_REQUESTS = ["pull_request", "pull_request_target"];

/** Finds the addresses of github.com, of a GitHub with data residency, or of a GitHub Enterprise Server. */
export function findGitHub(address: URL): GitHub {
  const url = formatAddress(address);
  if (url === GITHUB) {
    return { url, api: "https://api.github.com", issuer: "https://token.actions.githubusercontent.com" };
  }
  const { hostname } = address;
  return hostname.endsWith(".ghe.com")
    ? { url, api: `https://api.${hostname}`, issuer: `https://token.actions.${hostname}` }
    : { url, api: `${url}/api/v3`, issuer: `${url}/_services/token` };
}

/**
 * Asks GitHub for a repository.
 *
 * @throws CommandError NOT_FOUND for one that is private, missing or was renamed; others as {@link fetchPlatform}
 */
export async function fetchRepository({ api }: GitHub, name: string, remedy: string): Promise<Repository> {
  const what = `the repository ${name}`;
  const json = await fetchPlatform(new URL(`${api}/repos/${name}`), what, remedy);
  const found = readRepository(json, what);
  // GitHub compares names without regard to case, and claims have the case of the repository.
  if (found.name.toLowerCase() !== name.toLowerCase())
    throw new CommandError(Code.NotFound, `${what} is ${found.name} now: give the name that it has now`);
  return found;
}

/**
 * Reads a repository as the API of GitHub describes it.
 *
 * @throws CommandError UNAVAILABLE when an id is missing
 */
export function readRepository({ full_name, id, owner }: Readonly<Record<string, unknown>>, what: string): Repository {
  const ownerId = (owner as { readonly id?: unknown } | null | undefined)?.id;
  return {
    name: readName(full_name, ""),
    id: readNumber(id, what),
    ownerId: readNumber(ownerId, `the owner of ${what}`),
  };
}

/** The conditions that bind an identity to a repository, which its name alone does not. */
export function bindToIds({ id, ownerId }: Pick<Repository, "id" | "ownerId">): ConditionInit[] {
  return [equals("repository_id", id), equals("repository_owner_id", ownerId)];
}

async function findRepository(given: PresetValues, github: GitHub): Promise<Repository> {
  const name = readText(given, "github-repo", NAME, "must be an owner and a repository, such as octocat/my-repo");
  const [id, ownerId] = [readId(given, "repository-id"), readId(given, "owner-id")];
  if (id !== undefined && ownerId !== undefined) return { name, id, ownerId };
  if (id !== undefined || ownerId !== undefined)
    throw invalidFlag(id === undefined ? "--repository-id" : "--owner-id", "give both ids, or neither");
  const remedy = `--repository-id and --owner-id give its ids, which \`gh api repos/${name} --jq '.id, .owner.id'\` prints`;
  return fetchRepository(github, name, remedy);
}

export const githubActions: Preset = {
  title: "GitHub Actions",
  chosenBy: "github-repo",
  takes: ["github-url", "repository-id", "owner-id", "ref", "environment", "workflow"],
  async findTrust(given) {
    const [ref, environment, workflow] = [readRef(given), textOf(given, "environment"), readWorkflow(given)];
    const github = findGitHub(readAddress(given, "github-url", GITHUB));
    const repository = await findRepository(given, github);
    const { name, id, ownerId } = repository;
    const [owner, repo] = name.split("/") as [string, string];
    const names = `${quotePattern(name)}|${quotePattern(`${owner}@${ownerId}/${repo}@${id}`)}`;
    return {
      issuer: github.issuer,
      subject: { case: "subjectPattern", value: `repo:(${names}):${buildContext(ref?.full, environment)}` },
      conditions: [
        ...bindToIds(repository),
        equals("repository", name),
        isNoneOf("event_name", PULL_REQUESTS),
        ...(ref ? [resembles("ref", ref.full)] : []),
        ...(environment !== undefined ? [equals("environment", environment)] : []),
        ...(workflow !== undefined ? [beginsWith("workflow_ref", `${name}/${workflow}@`)] : []),
      ],
      accepted: [
        `jobs of GitHub Actions in the repository ${name} (id ${id}, owner ${ownerId}) of ${github.url}`,
        `on ${ref ? formatRef(ref) : "all branches and tags"}`,
        environment === undefined ? "with any environment or none" : `in the environment ${environment}`,
        ...(workflow === undefined ? [] : [`from the workflow ${workflow}`]),
        "except events of pull requests",
      ].join(", "),
      name: [owner, repo, environment].filter(Boolean).join("-"),
    };
  },
};

// The end of a subject: the environment of the job, or the ref of a job without one. A colon in it is escaped, which older
// versions of GitHub Enterprise Server do not.
function buildContext(ref: string | undefined, environment: string | undefined): string {
  if (environment !== undefined) return `environment:${environment.split(":").map(quotePattern).join("(:|%3A)")}`;
  return `(ref:${ref === undefined ? "refs/(heads|tags)/.+" : toPattern(ref)}|environment:.+)`;
}

function readWorkflow(given: PresetValues): string | undefined {
  if (given.workflow === undefined) return undefined;
  const rule = "must be the file of a workflow of the repository, such as deploy.yml";
  const file = readText(given, "workflow", /^(\.github\/workflows\/)?[^/@]+\.ya?ml$/, rule);
  return `.github/workflows/${file.slice(file.lastIndexOf("/") + 1)}`;
}
