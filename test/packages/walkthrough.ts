// The walkthrough of test/e2e over REST, and a list over gRPC by a client that shares no code with the service.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { PROJECT } from "../support/project.js";

const run = promisify(execFile);
const TIMEOUT_MS = 60_000;

/** What the walkthrough needs. */
export interface Walk {
  readonly url: string;
  readonly token: string;
  /** The uid of a group of the token's owner. */
  readonly group: string;
  /** What comes before each command, such as `nsenter` with its arguments. */
  readonly prefix?: readonly string[];
  /** The domain of errors, where the base URL has another host than the address. */
  readonly errorDomain?: string;
}

/** Walks through the calls of groups with curl, and lists them over gRPC. @throws when a response is another one. */
export async function walkThrough({ url, token, group, prefix = [], errorDomain }: Walk): Promise<void> {
  const [script, buf] = [join(PROJECT, "test/e2e/walkthrough.sh"), join(PROJECT, "node_modules/.bin/buf")];
  const domain = errorDomain === undefined ? {} : { ERROR_DOMAIN: errorDomain };
  const env = { PATH: process.env.PATH, LC_ALL: "C.UTF-8", HOME: "/nonexistent", ...domain };
  const call = (command: readonly string[], more: Record<string, string> = {}) => {
    const [program = "", ...args] = [...prefix, ...command];
    return run(program, args, { env: { ...env, ...more }, timeout: TIMEOUT_MS });
  };
  const walked = await call(["bash", script], { BASE: url, TOKEN: token, GROUP: group });
  assert.equal(walked.stdout.trim().split("\n").length, 26, walked.stdout + walked.stderr);
  const options = ["--protocol", "grpc", "--http2-prior-knowledge", "--header", `authorization: Bearer ${token}`];
  const method = `${url}/chainguard.platform.iam.v2beta1.GroupsService/ListGroups`;
  const listed = await call([buf, "curl", ...options, "--data", "{}", method], { BUF_CACHE_DIR: "/tmp/arbor-buf" });
  const groups = JSON.parse(listed.stdout).groups as { uid: string }[];
  assert.deepEqual(
    groups.map(({ uid }) => uid),
    [group],
    listed.stdout,
  );
}
