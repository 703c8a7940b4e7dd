// The examples that tell one story in several languages: each is followed as its README says, in an empty folder.
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { after, before, describe, it } from "node:test";
import { packAll } from "../support/packed.js";
import {
  commandsOf,
  cutUids,
  type Demo,
  GO_MODULES,
  missing,
  printedBy,
  shell,
  startDemo,
  withoutUids,
} from "./follow.js";

/** The examples, and the commands that succeed where their programs are. */
const STORIES: Readonly<Record<string, readonly string[]>> = {
  typescript: ["npm --version"],
  curl: ["curl --version", "jq --version"],
  python: [
    "/usr/bin/python3 -s -c 'import grpc, google.protobuf'",
    "command -v protoc",
    "command -v grpc_python_plugin",
  ],
  // The plugins and what the stubs import come from the proxy for modules.
  go: ["command -v protoc", GO_MODULES],
};

let demo: Demo;
let packages: string;
before(async () => {
  const { client } = await packAll();
  packages = dirname(client);
  demo = await startDemo();
});
after(() => demo?.stop());

for (const [name, programs] of Object.entries(STORIES)) {
  const page = `examples/${name}/README.md`;
  describe(page, { skip: missing(`the example ${name}`, ...programs) }, () => {
    it("prints what it says", async () => {
      const { stdout } = await shell(commandsOf(page), { env: { ...demo.variables, PACKAGES: packages } });
      const printed = withoutUids(stdout);
      const said = printedBy(page).map(cutUids);
      assert.ok(said.length >= 6, "the README shows too little");
      // Stories before have left groups of theirs.
      assert.deepEqual(
        printed.filter((line) => said.includes(line) || !line.startsWith("team of ")),
        said,
      );
    });

    it("fails where the token is refused", async () => {
      const env = { ...demo.variables, PACKAGES: packages, IDENTITY: `${demo.variables.IDENTITY?.slice(0, -4)}0000` };
      await assert.rejects(shell(commandsOf(page), { env }), /ended with [1-9]/);
    });
  });
}
