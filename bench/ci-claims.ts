// Workflows of a CI system: their tokens, with as many claims as those of common CI systems have, and identities that
// exchange them.
import type { LocalIssuer } from "../test/support/local-issuer.js";
import { createResource, type Side } from "./side.js";

/** A workflow that has an identity. */
export interface Workflow {
  /** The path of the token exchange, with its parameters. */
  readonly exchange: string;
  /** The token to exchange in one run of it. */
  token(run: number): string;
}

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

/** Creates the identity of a workflow, whose tokens the service must trust. */
export async function createWorkflow(side: Side, issuer: LocalIssuer, app: number): Promise<Workflow> {
  const { url, group } = side;
  const claimMatch = { issuer: issuer.issuer, subject: subjectFor(app), claims: { repository_owner: "octo" } };
  const identity = await createResource(side, `/iam/v2beta1/identities/${group}`, { name: "workflow", claimMatch });
  const exp = Math.floor(Date.now() / 1000) + 3_600;
  return {
    exchange: `/sts/exchange?${new URLSearchParams({ aud: url, identity })}`,
    token: (run) => issuer.token({ ...buildClaims({ run, app, audience: url }), exp }),
  };
}
