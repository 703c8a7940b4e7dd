// Buildkite: jobs of one pipeline. Slugs can be given to another after a rename; ids never are, and are in tokens only of jobs
// that ask for them.
import {
  equals,
  formatRef,
  type Preset,
  type PresetValues,
  quotePattern,
  readRef,
  readText,
  resembles,
  textOf,
  toPattern,
} from "./preset.js";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const buildkite: Preset = {
  title: "Buildkite",
  chosenBy: "buildkite-pipeline",
  takes: ["organization-id", "pipeline-id", "ref", "step"],
  findTrust(given) {
    const path = readText(
      given,
      "buildkite-pipeline",
      /^[a-z0-9-]+\/[a-z0-9-]+$/,
      "must be the slugs of an organisation and a pipeline, such as acme/deploy",
    );
    const [organization, pipeline] = path.split("/") as [string, string];
    const [organizationId, pipelineId] = [readUuid(given, "organization-id"), readUuid(given, "pipeline-id")];
    const [ref, step] = [readRef(given), textOf(given, "step")];
    const refs = ref === undefined ? "refs/(heads|tags)/.+" : toPattern(ref.full);
    const subject = [
      `organization:${organization}:pipeline:${pipeline}:ref:${refs}`,
      `commit:[^:]*:step:${step === undefined ? ".*" : quotePattern(step)}`,
    ].join(":");
    const ids = [organizationId && `organisation ${organizationId}`, pipelineId && `pipeline ${pipelineId}`];
    const named = ids.filter(Boolean).join(", ");
    return {
      issuer: "https://agent.buildkite.com",
      subject: { case: "subjectPattern", value: subject },
      conditions: [
        equals("organization_slug", organization),
        equals("pipeline_slug", pipeline),
        ...(organizationId !== undefined ? [equals("organization_id", organizationId)] : []),
        ...(pipelineId !== undefined ? [equals("pipeline_id", pipelineId)] : []),
        ...(ref ? [resembles(ref.type === "branch" ? "build_branch" : "build_tag", ref.name)] : []),
        ...(step !== undefined ? [equals("step_key", step)] : []),
      ],
      accepted: [
        `jobs of the Buildkite pipeline ${path}${named && ` (${named})`}`,
        `on ${ref ? formatRef(ref) : "all branches and tags"}`,
        step === undefined ? "of any step" : `of the step ${step}`,
      ].join(", "),
      name: path,
    };
  },
};

function readUuid(given: PresetValues, name: string): string | undefined {
  return given[name] === undefined ? undefined : readText(given, name, UUID, "must be a UUID in lower case");
}
