// Claims of the tokens of platforms, in the shape that each documents, and the tokens close to them that it warns of.
import type { JsonObject } from "@bufbuild/protobuf";

/** A token that must be accepted or rejected. */
export interface NearMiss {
  readonly name: string;
  /** The claims that differ; undefined for one that is missing. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** The claim that the rejection names; undefined for a token that is accepted. */
  readonly fails?: string;
}

/** An identity of a preset, and tokens. */
export interface PresetCase {
  readonly flags: readonly string[];
  readonly claims: JsonObject;
  readonly tokens: readonly NearMiss[];
}

const times = { nbf: 1_798_761_600, iat: 1_798_761_600, exp: 1_798_762_500 };

const github: JsonObject = {
  ...times,
  jti: "6a0fa8ad-5aeb-4a41-9ecc-d1fa2ef2c0f1",
  iss: "https://token.actions.githubusercontent.com",
  sub: "repo:octocat/my-repo:ref:refs/heads/main",
  ref: "refs/heads/main",
  ref_type: "branch",
  ref_protected: "true",
  sha: "9f3182061f1e2cca4702c368cbc039b7dc9d4485",
  repository: "octocat/my-repo",
  repository_id: "456789",
  repository_owner: "octocat",
  repository_owner_id: "583231",
  repository_visibility: "private",
  actor: "octocat",
  actor_id: "583231",
  event_name: "push",
  head_ref: "",
  base_ref: "",
  run_id: "9001",
  run_number: "10",
  run_attempt: "1",
  runner_environment: "github-hosted",
  workflow: "deploy",
  workflow_ref: "octocat/my-repo/.github/workflows/deploy.yml@refs/heads/main",
  workflow_sha: "9f3182061f1e2cca4702c368cbc039b7dc9d4485",
  job_workflow_ref: "octocat/my-repo/.github/workflows/deploy.yml@refs/heads/main",
};
const WITH_IDS = "octocat@583231/my-repo@456789";
const githubIds = ["--repository-id", "456789", "--owner-id", "583231"];
const githubRepo = ["--github-repo", "octocat/my-repo", ...githubIds];
const onTag = { ref: "refs/tags/v1.0", ref_type: "tag", sub: "repo:octocat/my-repo:ref:refs/tags/v1.0" };
const ofFork = {
  repository: "mallory/my-repo",
  repository_id: "777",
  repository_owner: "mallory",
  repository_owner_id: "666",
};
const pullRequest = {
  sub: "repo:octocat/my-repo:pull_request",
  event_name: "pull_request",
  ref: "refs/pull/7/merge",
  head_ref: "main",
  base_ref: "main",
};
const inProduction = { sub: "repo:octocat/my-repo:environment:production", environment: "production" };
const inStaging = { sub: "repo:octocat/my-repo:environment:staging", environment: "staging" };

const gitlab: JsonObject = {
  ...times,
  iss: "https://gitlab.com",
  sub: "project_path:acme/tools/app:ref_type:branch:ref:main",
  namespace_id: "72",
  namespace_path: "acme/tools",
  project_id: "20",
  project_path: "acme/tools/app",
  user_id: "1",
  user_login: "ada",
  user_email: "ada@acme.example",
  user_identities: [{ provider: "github", extern_uid: "2435223452345" }],
  pipeline_id: "574",
  pipeline_source: "push",
  job_id: "302",
  ref: "main",
  ref_type: "branch",
  ref_path: "refs/heads/main",
  ref_protected: "true",
  groups_direct: ["acme"],
  runner_id: 1,
  runner_environment: "gitlab-hosted",
  sha: "714a629c0b401fdce83e847fc9589983fc6f46bc",
};
const gitlabProject = ["--gitlab-project", "acme/tools/app", "--project-id", "20"];
const mergeRequest = { pipeline_source: "merge_request_event" };

const kubernetes: JsonObject = {
  ...times,
  iss: "https://oidc.cluster.example",
  sub: "system:serviceaccount:ci:builder",
  jti: "ed3bd4bc-5b8f-4d4a-9a1a-3c1e6b0d3a6e",
  "kubernetes.io": {
    namespace: "ci",
    node: { name: "node-1", uid: "6f5c0e2d-4c1b-4a2d-8a3b-1f2e3d4c5b6a" },
    pod: { name: "builder-0", uid: "0d8b260e-ef0e-45fb-be8e-ff44f97722e8" },
    serviceaccount: { name: "builder", uid: "e6a8680e-d103-4cce-80ea-03acbbeacf7d" },
    warnafter: 1_798_762_000,
  },
};
const kubernetesAccount = ["--kubernetes-issuer", "https://oidc.cluster.example", "--namespace", "ci"];
const builder = [...kubernetesAccount, "--service-account", "builder"];
const nested = (more: object) => ({ "kubernetes.io": { ...(kubernetes["kubernetes.io"] as object), ...more } });

const SHA = "9f3182061f1e2cca4702c368cbc039b7dc9d4485";
const ORGANIZATION_ID = "0184990a-477b-4fa8-9968-496074483e77";
const PIPELINE_ID = "0184990a-4782-42b5-afc1-16715b10b1f0";
const buildkiteSubject = (ref: string, step = "deploy", pipeline = "acme:pipeline:app") =>
  `organization:${pipeline}:ref:${ref}:commit:${SHA}:step:${step}`;
const buildkite: JsonObject = {
  ...times,
  iss: "https://agent.buildkite.com",
  sub: buildkiteSubject("refs/heads/main"),
  jti: "0194b014-8517-7cef-b232-76a827315f08",
  organization_slug: "acme",
  pipeline_slug: "app",
  build_number: 5,
  build_branch: "main",
  build_tag: null,
  build_commit: SHA,
  step_key: "deploy",
  job_id: "01945ecf-80f0-41e8-9b83-a2970a9305a1",
  agent_id: "01945ecf-8bcf-40a6-9d70-a765db9a0928",
  build_source: "webhook",
  runner_environment: "buildkite-hosted",
};
const buildkitePipeline = ["--buildkite-pipeline", "acme/app"];

export const cases: readonly PresetCase[] = [
  {
    flags: githubRepo,
    claims: github,
    tokens: [
      { name: "without ids in the subject", claims: {} },
      { name: "with ids in the subject", claims: { sub: `repo:${WITH_IDS}:ref:refs/heads/main` } },
      { name: "another branch", claims: { sub: "repo:octocat/my-repo:ref:refs/heads/x", ref: "refs/heads/x" } },
      { name: "a tag", claims: onTag },
      { name: "an environment", claims: inStaging },
      { name: "a fork", claims: { ...ofFork, sub: "repo:mallory/my-repo:ref:refs/heads/main" }, fails: "sub" },
      {
        name: "another repository whose name was given up",
        claims: { repository_id: "777", sub: "repo:octocat/my-repo@777:ref:refs/heads/main" },
        fails: "sub",
      },
      { name: "the same, with the old form of the subject", claims: { repository_id: "777" }, fails: "repository_id" },
      { name: "another owner of the name", claims: { repository_owner_id: "666" }, fails: "repository_owner_id" },
      {
        name: "the repository after it was renamed",
        claims: { repository: "octocat/new", sub: "repo:octocat@583231/new@456789:ref:refs/heads/main" },
        fails: "sub",
      },
      { name: "the same, with a subject of its own", claims: { repository: "octocat/new" }, fails: "repository" },
      { name: "a pull request", claims: pullRequest, fails: "sub" },
      { name: "a pull request with an environment", claims: { ...pullRequest, ...inProduction }, fails: "event_name" },
      { name: "pull_request_target", claims: { event_name: "pull_request_target" }, fails: "event_name" },
      { name: "no event", claims: { event_name: undefined }, fails: "event_name" },
      { name: "an id that is a number", claims: { repository_id: 456789 }, fails: "repository_id" },
      { name: "another GitHub", claims: { iss: "https://ghe.example/_services/token" }, fails: "iss" },
    ],
  },
  {
    flags: [...githubRepo, "--ref", "main", "--workflow", "deploy.yml"],
    claims: github,
    tokens: [
      { name: "the branch", claims: {} },
      { name: "the branch, with ids", claims: { sub: `repo:${WITH_IDS}:ref:refs/heads/main` } },
      { name: "the branch, with an environment", claims: inStaging },
      { name: "another branch with an environment", claims: { ...inStaging, ref: "refs/heads/x" }, fails: "ref" },
      {
        name: "a branch that begins with it",
        claims: { sub: "repo:octocat/my-repo:ref:refs/heads/main2", ref: "refs/heads/main2" },
        fails: "sub",
      },
      {
        name: "a tag of that name",
        claims: { ...onTag, ref: "refs/tags/main", sub: "repo:octocat/my-repo:ref:refs/tags/main" },
        fails: "sub",
      },
      {
        name: "another workflow",
        claims: { workflow_ref: "octocat/my-repo/.github/workflows/deploy.yml.yml@refs/heads/main" },
        fails: "workflow_ref",
      },
      {
        name: "a workflow of that name elsewhere",
        claims: { workflow_ref: "mallory/my-repo/.github/workflows/deploy.yml@refs/heads/main" },
        fails: "workflow_ref",
      },
    ],
  },
  {
    flags: [...githubRepo, "--environment", "production"],
    claims: { ...github, ...inProduction },
    tokens: [
      { name: "the environment", claims: {} },
      { name: "the environment, with ids", claims: { sub: `repo:${WITH_IDS}:environment:production` } },
      { name: "another environment", claims: inStaging, fails: "sub" },
      { name: "no environment", claims: { sub: github.sub, environment: undefined }, fails: "sub" },
      { name: "an environment in the claim alone", claims: { environment: "staging" }, fails: "environment" },
      {
        name: "a branch that is called as the environment",
        claims: { sub: "repo:octocat/my-repo:ref:refs/heads/environment:production" },
        fails: "sub",
      },
    ],
  },
  {
    flags: [...githubRepo, "--environment", "eu:live"],
    claims: { ...github, sub: "repo:octocat/my-repo:environment:eu%3Alive", environment: "eu:live" },
    tokens: [
      { name: "a colon that is escaped", claims: {} },
      { name: "a colon as it is", claims: { sub: "repo:octocat/my-repo:environment:eu:live" } },
    ],
  },
  {
    flags: [...githubRepo, "--ref", "refs/tags/v*"],
    claims: { ...github, ...onTag },
    tokens: [
      { name: "a tag", claims: {} },
      {
        name: "another tag",
        claims: { sub: "repo:octocat/my-repo:ref:refs/tags/w1", ref: "refs/tags/w1" },
        fails: "sub",
      },
      { name: "another tag in the claim alone", claims: { ref: "refs/tags/w1" }, fails: "ref" },
      {
        name: "a branch that is called so",
        claims: { sub: "repo:octocat/my-repo:ref:refs/heads/v1.0", ref: "refs/heads/v1.0" },
        fails: "sub",
      },
    ],
  },
  {
    flags: [...githubRepo, "--github-url", "https://ghe.example"],
    claims: { ...github, iss: "https://ghe.example/_services/token" },
    tokens: [
      { name: "a GitHub Enterprise Server", claims: {} },
      { name: "github.com", claims: { iss: github.iss }, fails: "iss" },
    ],
  },
  {
    flags: [...githubRepo, "--github-url", "https://octocorp.ghe.com/"],
    claims: { ...github, iss: "https://token.actions.octocorp.ghe.com" },
    tokens: [{ name: "a GitHub with data residency", claims: {} }],
  },
  {
    flags: gitlabProject,
    claims: gitlab,
    tokens: [
      { name: "a branch", claims: {} },
      { name: "a tag", claims: { sub: "project_path:acme/tools/app:ref_type:tag:ref:v1", ref: "v1", ref_type: "tag" } },
      {
        name: "a fork",
        claims: { sub: "project_path:mallory/app:ref_type:branch:ref:main", project_id: "99" },
        fails: "sub",
      },
      { name: "another project of the path", claims: { project_id: "99" }, fails: "project_id" },
      { name: "the project after it was moved", claims: { project_path: "acme/app" }, fails: "project_path" },
      { name: "a pipeline of a merge request", claims: mergeRequest, fails: "pipeline_source" },
    ],
  },
  {
    flags: [...gitlabProject, "--ref", "main", "--ref-protected", "--environment", "production"],
    claims: { ...gitlab, environment: "production", environment_protected: "true", deployment_tier: "production" },
    tokens: [
      { name: "the branch and the environment", claims: {} },
      { name: "another branch in the claim alone", claims: { ref: "x" }, fails: "ref" },
      {
        name: "another branch",
        claims: { sub: "project_path:acme/tools/app:ref_type:branch:ref:x", ref: "x" },
        fails: "sub",
      },
      {
        name: "a tag of that name",
        claims: { sub: "project_path:acme/tools/app:ref_type:tag:ref:main", ref_type: "tag" },
        fails: "sub",
      },
      { name: "a branch that is not protected", claims: { ref_protected: "false" }, fails: "ref_protected" },
      { name: "another environment", claims: { environment: "staging" }, fails: "environment" },
      { name: "no environment", claims: { environment: undefined }, fails: "environment" },
    ],
  },
  {
    flags: [...gitlabProject, "--gitlab-url", "https://example.com/gitlab/", "--ref", "release/*"],
    claims: {
      ...gitlab,
      iss: "https://example.com/gitlab",
      sub: "project_path:acme/tools/app:ref_type:branch:ref:release/1",
      ref: "release/1",
    },
    tokens: [
      { name: "a GitLab of one's own", claims: {} },
      { name: "gitlab.com", claims: { iss: gitlab.iss }, fails: "iss" },
      { name: "a branch without the prefix", claims: { ref: "xrelease/1" }, fails: "ref" },
    ],
  },
  {
    flags: builder,
    claims: kubernetes,
    tokens: [
      { name: "the account", claims: {} },
      { name: "the account, created again", claims: nested({ serviceaccount: { name: "builder", uid: "new" } }) },
      { name: "another namespace", claims: { sub: "system:serviceaccount:dev:builder" }, fails: "sub" },
      { name: "another account", claims: { sub: "system:serviceaccount:ci:default" }, fails: "sub" },
      {
        name: "another namespace in the claim alone",
        claims: nested({ namespace: "dev" }),
        fails: '"kubernetes.io".namespace',
      },
      {
        name: "a token of an old form, without nested claims",
        claims: { "kubernetes.io": undefined, "kubernetes.io/serviceaccount/namespace": "ci" },
        fails: '"kubernetes.io".namespace',
      },
      { name: "another cluster", claims: { iss: "https://oidc.other.example" }, fails: "iss" },
    ],
  },
  {
    flags: [...builder, "--service-account-id", "e6a8680e-d103-4cce-80ea-03acbbeacf7d"],
    claims: kubernetes,
    tokens: [
      { name: "the account", claims: {} },
      {
        name: "the account, created again",
        claims: nested({ serviceaccount: { name: "builder", uid: "new" } }),
        fails: '"kubernetes.io".serviceaccount.uid',
      },
    ],
  },
  {
    flags: buildkitePipeline,
    claims: buildkite,
    tokens: [
      { name: "a branch", claims: {} },
      { name: "a tag", claims: { sub: buildkiteSubject("refs/tags/v1"), build_tag: "v1" } },
      { name: "a step without a key", claims: { sub: buildkiteSubject("refs/heads/main", ""), step_key: null } },
      {
        name: "another pipeline",
        claims: { sub: buildkiteSubject("refs/heads/main", "deploy", "acme:pipeline:app2"), pipeline_slug: "app2" },
        fails: "sub",
      },
      {
        name: "another organisation",
        claims: { sub: buildkiteSubject("refs/heads/main", "deploy", "other:pipeline:app") },
        fails: "sub",
      },
      { name: "a subject that the job chose", claims: { sub: PIPELINE_ID }, fails: "sub" },
    ],
  },
  {
    flags: [
      ...[...buildkitePipeline, "--ref", "main", "--step", "deploy"],
      ...["--organization-id", ORGANIZATION_ID, "--pipeline-id", PIPELINE_ID],
    ],
    claims: { ...buildkite, organization_id: ORGANIZATION_ID, pipeline_id: PIPELINE_ID },
    tokens: [
      { name: "the step", claims: {} },
      { name: "another step", claims: { sub: buildkiteSubject("refs/heads/main", "test") }, fails: "sub" },
      { name: "another step in the claim alone", claims: { step_key: "test" }, fails: "step_key" },
      { name: "another branch", claims: { sub: buildkiteSubject("refs/heads/x"), build_branch: "x" }, fails: "sub" },
      {
        name: "a tag of the branch",
        claims: { sub: buildkiteSubject("refs/tags/main"), build_tag: "main" },
        fails: "sub",
      },
      {
        name: "a branch that repeats what follows it",
        claims: { build_branch: `main:commit:${SHA}:step:deploy:x` },
        fails: "build_branch",
      },
      { name: "another organisation of the slug", claims: { organization_id: PIPELINE_ID }, fails: "organization_id" },
      { name: "a job that does not ask for ids", claims: { pipeline_id: undefined }, fails: "pipeline_id" },
    ],
  },
];
