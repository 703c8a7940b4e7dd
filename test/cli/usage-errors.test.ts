// Usage errors are one line: the flag once, what it must be, and where the help is.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { invalidFlag } from "../../src/cli/errors.js";
import { runCommand } from "../support/command.js";

const uid = "0".repeat(40);
const scope = ["--scope", uid];

// Each with the flag or argument that breaks a rule, and the command whose help is named.
const wrong: readonly (readonly [line: string, flag: string, command: string])[] = [
  ["iam groups list --page-size x", "--page-size", "iam groups list"],
  ["iam groups list --filter x=1", "--filter", "iam groups list"],
  ["iam groups list --filter name=a --filter name=b", "--filter", "iam groups list"],
  ["iam groups list --filter in-root=1", "--filter", "iam groups list"],
  ["iam groups list -o json --columns name", "--columns", "iam groups list"],
  ["iam groups list --columns none", "--columns", "iam groups list"],
  [`iam groups update ${uid}`, "--update-mask", "iam groups update"],
  ["iam groups create --name a --kind none", "--kind", "iam groups create"],
  ["iam groups create --file /nowhere", "--file", "iam groups create"],
  ["iam roles list --api x", "--api", "iam roles list"],
  ["iam group-invites create --parent a --ttl soon", "--ttl", "iam group-invites create"],
  ["iam identities create --claim x --name a --parent b", "--claim", "iam identities create"],
  ["auth pull-tokens create --group a --ttl 1y", "--ttl", "auth pull-tokens create"],
  ["auth login --identity a", "--identity", "auth login"],
  ["auth bindings list --filter none=1", "--filter", "auth bindings list"],
  ["auth sessions list --columns none", "--columns", "auth sessions list"],
  ["members list --group a --columns none", "--columns", "members list"],
  ["can me groups.updat --group a", "method", "can"],
  ["can me none.None --group a", "method", "can"],
  ["can me groups.update", "--group", "can"],
  ["can me groups.update --group a --resource b", "--group", "can"],
  ["access list --columns none", "--columns", "access list"],
  ["access list --page-size x", "--page-size", "access list"],
  ["access explain me groups.update", "--group", "access explain"],
  ["access subjects GroupsService/GetGroup", "--group", "access subjects"],
  ["access search a --kind role", "--kind", "access search"],
  ["iam identities test-claims a", "--identity-token", "iam identities test-claims"],
  ["iam identities test-claims a --claims-file /nowhere", "--claims-file", "iam identities test-claims"],
  ["iam identities test-claims a --claims-file /dev/null", "--claims-file", "iam identities test-claims"],
  ["iam identities test-claims a --identity-token /dev/null", "--identity-token", "iam identities test-claims"],
  ["api call none.None", "method", "api call"],
  ["audit list --page-size 0", "--page-size", "audit list"],
  ["audit list --since x", "--since", "audit list"],
  ["audit verify --jwks x", "--jwks", "audit verify"],
  [`audit list ${scope.join(" ")} --org x`, "--org", "audit list"],
  [`audit list ${scope.join(" ")} --columns none`, "--columns", "audit list"],
  ["events deliveries redeliver --subscription a", "--id", "events deliveries redeliver"],
  ["admin token --identity a --ttl x", "--ttl", "admin token"],
  ["admin organisations list --page-size x", "--page-size", "admin organisations list"],
  ["admin organisations list --page-token x", "--page-token", "admin organisations list"],
  ["migrate --force", "--force", "migrate"],
  ["copy", "--to", "copy"],
];

// An empty text in place of a uid, at the end of each line.
const empty: readonly (readonly [line: string, flag: string, command: string])[] = [
  ["auth login --identity-token /dev/null --identity ", "--identity", "auth login"],
  ["auth login --scope ", "--scope", "auth login"],
  ["auth pull-tokens create --group ", "--group", "auth pull-tokens create"],
  ["iam groups create --name a --parent ", "--parent", "iam groups create"],
  ["iam groups list --children-of ", "--children-of", "iam groups list"],
  ["iam groups list --id ", "--id", "iam groups list"],
  ["iam groups get ", "uid", "iam groups get"],
  ["iam groups update ", "uid", "iam groups update"],
  ["iam role-bindings create --parent a --role b --identity-uid ", "--identity", "iam role-bindings create"],
  ["members list --group ", "--group", "members list"],
  ["can  groups.update --group a", "identity", "can"],
  ["can me groups.update --group ", "--group", "can"],
  ["access list ", "identity", "access list"],
  ["iam identities test-claims  --claims-file a", "identity", "iam identities test-claims"],
  ["events listen --scope ", "--scope", "events listen"],
  ["admin identities list --org ", "--org", "admin identities list"],
  ["admin token --identity ", "--identity", "admin token"],
];
const RULE = "is empty, as a variable that is not set; it must be a uid or a name";

describe("a usage error", () => {
  for (const [line, flag, command] of empty) {
    it(`of arbor ${line}with nothing`, async () => {
      const { code, stdout, stderr } = await runCommand(line.split(" "), { ARBOR_API: "http://127.0.0.1:1" });
      const text = `arbor: ${flag}: ${RULE}; see arbor ${command} --help\n`;
      assert.deepEqual([code, stdout, stderr], [2, "", text]);
    });
  }

  for (const line of [
    "iam identity-providers update 0123456789abcdef0123456789abcdef01234567/45 --default-role ",
    "iam groups list --name ",
    "admin organisations list --page-token ",
  ]) {
    it(`is not what ${line}with nothing is`, async () => {
      const { stderr } = await runCommand(line.split(" "), { ARBOR_API: "http://127.0.0.1:1" });
      assert.doesNotMatch(stderr, /is empty/);
    });
  }

  for (const [line, flag, command] of wrong) {
    it(`of arbor ${line}`, async () => {
      const { code, stdout, stderr } = await runCommand(line.split(" "), { ARBOR_API: "http://127.0.0.1:1" });
      assert.deepEqual([code, stdout], [2, ""], stderr);
      const [, named, rule = "", pointer] = /^arbor: (\S+): ([^\n]+); see arbor ([^\n]+) --help\n$/.exec(stderr) ?? [];
      assert.deepEqual([named, pointer], [flag, command], stderr);
      assert.ok(!rule.startsWith(`${flag} `), stderr);
    });
  }

  it("names a flag once, also where a text of others begins with it", () => {
    assert.equal(invalidFlag("--api", "--api must be a URL").message, "--api: must be a URL");
    assert.equal(invalidFlag("--to", "--to-url-file is there").message, "--to: --to-url-file is there");
  });
});
