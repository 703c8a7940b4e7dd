#!/usr/bin/env node
// Entry of `docker-credential-arbor`, which docker runs for every pull once `arbor auth configure-docker` has told it to.
const { HELPER_ACTIONS, isHelperAction, runHelper } = await import("../remote/auth/docker-credential.js");

const [action = "", ...others] = process.argv.slice(2);
if (others.length === 0 && isHelperAction(action)) {
  process.exitCode = await runHelper(action);
} else {
  process.stderr.write(`usage: docker-credential-arbor ${HELPER_ACTIONS.join("|")}\n`);
  process.exitCode = 2;
}
