// Tokens of workflows, with as many claims as those of common CI systems have.

/** The subject of the workflows of an application. */
export function subjectFor(app: number): string {
  return `repo:octo/app-${app}:ref:refs/heads/main`;
}

/** The claims of one run of a workflow. */
export function buildClaims({
  run,
  app,
  audience,
}: {
  readonly run: number;
  readonly app: number;
  readonly audience: string;
}) {
  return {
    jti: `00000000-0000-4000-8000-${String(run).padStart(12, "0")}`,
    sub: subjectFor(app),
    aud: audience,
    ref: "refs/heads/main",
    sha: String(run).padStart(40, "a"),
    repository: `octo/app-${app}`,
    repository_owner: "octo",
    repository_owner_id: "65",
    run_id: String(30_000_000 + run),
    run_number: String(run),
    run_attempt: "1",
    repository_visibility: "private",
    repository_id: String(74_000 + app),
    actor_id: "12",
    actor: "octocat",
    workflow: "example-workflow",
    head_ref: "",
    base_ref: "",
    event_name: "workflow_dispatch",
    ref_protected: "false",
    ref_type: "branch",
    workflow_ref: `octo/app-${app}/.github/workflows/example.yml@refs/heads/main`,
    workflow_sha: String(run).padStart(40, "b"),
    job_workflow_ref: "octo/automation/.github/workflows/oidc.yml@refs/heads/main",
    runner_environment: "github-hosted",
  };
}
