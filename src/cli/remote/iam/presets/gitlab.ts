// GitLab CI: jobs of one project, by its id and its path. A project may lose its path to another one, never its id.
import { fetchPlatform, readName, readNumber } from "./forge.js";
import {
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

const PATH = /^[\w.+-]+(\/[\w.+-]+)+$/;

/** The pipelines of merge requests, whose branches have names that those who open them choose. */
const MERGE_REQUESTS = ["merge_request_event", "external_pull_request_event"];

async function findProject(given: PresetValues, url: string): Promise<{ readonly path: string; readonly id: string }> {
  const path = readText(given, "gitlab-project", PATH, "must be the path of a project, such as octocat/my-repo");
  const numbered = readId(given, "project-id");
  if (numbered !== undefined) return { path, id: numbered };
  const what = `the project ${path}`;
  const remedy = "--project-id gives its id, which its page at GitLab shows";
  const json = await fetchPlatform(new URL(`${url}/api/v4/projects/${encodeURIComponent(path)}`), what, remedy);
  return { path: readName(json.path_with_namespace, path), id: readNumber(json.id, what) };
}

export const gitlabCi: Preset = {
  title: "GitLab CI",
  chosenBy: "gitlab-project",
  takes: ["gitlab-url", "project-id", "ref", "ref-protected", "environment"],
  async findTrust(given) {
    const [ref, environment] = [readRef(given), textOf(given, "environment")];
    const url = formatAddress(readAddress(given, "gitlab-url", "https://gitlab.com"));
    const { path, id } = await findProject(given, url);
    const isProtected = given["ref-protected"] === true;
    return {
      issuer: url,
      subject: buildSubject(path, ref),
      conditions: [
        equals("project_id", id),
        equals("project_path", path),
        isNoneOf("pipeline_source", MERGE_REQUESTS),
        ...(ref ? [equals("ref_type", ref.type), resembles("ref", ref.name)] : []),
        // A text in tokens of GitLab, as all ids are.
        ...(isProtected ? [equals("ref_protected", "true")] : []),
        ...(environment !== undefined ? [equals("environment", environment)] : []),
      ],
      accepted: [
        `jobs of GitLab CI in the project ${path} (id ${id}) of ${url}`,
        `on ${ref ? formatRef(ref) : "all branches and tags"}${isProtected ? " if protected" : ""}`,
        environment === undefined ? "with any environment or none" : `in the environment ${environment}`,
        "except pipelines of merge requests",
      ].join(", "),
      name: [path, environment].filter(Boolean).join("-"),
    };
  },
};

function buildSubject(path: string, ref: ReturnType<typeof readRef>) {
  if (ref && !ref.name.includes("*"))
    return { case: "subject", value: `project_path:${path}:ref_type:${ref.type}:ref:${ref.name}` } as const;
  const rest = ref ? `${ref.type}:ref:${toPattern(ref.name)}` : "(branch|tag):ref:.+";
  return { case: "subjectPattern", value: `project_path:${quotePattern(path)}:ref_type:${rest}` } as const;
}
