// The commands of identities beside those of their methods.
import type { Command } from "commander";
import { addTestClaims } from "../access/test-claims-command.js";
import { addConvertGithub } from "./presets/convert-github-command.js";
import { addRevokeTokens } from "./revoke-tokens-command.js";
import { addConditions } from "./trust-commands.js";

export function addIdentityCommands(identities: Command): void {
  addTestClaims(identities);
  addRevokeTokens(identities);
  addConvertGithub(identities);
  addConditions(identities);
}
