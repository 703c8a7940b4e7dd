// The exit codes after which supervisors start the service again: the table of docs/cli.md, the program and the files of
// deploy/ agree.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Code } from "@connectrpc/connect";
import { exitCodes } from "../../src/cli/errors.js";
import { find, podTemplateOf, render } from "../kubernetes/overlays.js";
import { PROJECT } from "../support/project.js";
import { readComposeFile } from "./compose-file.js";
import { readExecForm, readLastStage } from "./containerfile.js";

const read = (path: string) => readFileSync(join(PROJECT, path), "utf8");

interface Row {
  readonly code: number;
  readonly statuses: readonly string[];
  readonly again: string;
}

function readTable(text: string): readonly Row[] {
  const section = /^### Exit codes\n([\s\S]*?)^## /m.exec(text)?.[1] ?? "";
  return [...section.matchAll(/^\| (\d+) \|(.*)\|(.*)\|(.*)\|$/gm)].map(([, code, statuses = "", , again = ""]) => ({
    code: Number(code),
    statuses: [...statuses.matchAll(/`([A-Z_]+)`/g)].map(([, name = ""]) => name),
    again: again.trim(),
  }));
}

const rows = readTable(read("docs/cli.md"));
/** The codes after which the table says that a start does not help. */
const final = rows.filter(({ again }) => again === "no").map(({ code }) => code);
const UNITS = ["arbor.service", "arbor@.service"];
const readUnit = (name: string) => read(`deploy/systemd/${name}`);
const readNumbers = (unit: string) => /^RestartPreventExitStatus=(.*)$/m.exec(unit)?.[1]?.split(" ").map(Number);

describe("the table of exit codes", () => {
  it("has those of the program", () => {
    const toName = (code: number) => (Code[code] ?? "").replace(/(?<=.)(?=[A-Z])/g, "_").toUpperCase();
    const expected = Object.entries(exitCodes).map(([code, exit]) => `${exit} ${toName(Number(code))}`);
    const written = rows.flatMap(({ code, statuses }) => statuses.map((name) => `${code} ${name}`));
    assert.deepEqual(written.sort(), expected.sort());
    for (const code of [0, 1, 70])
      assert.ok(
        rows.some((row) => row.code === code && row.again === "yes"),
        `${code}`,
      );
  });

  it("is the only one in the documentation", () => {
    for (const page of ["operations", "backup", "advisories", "install", "host-faults", "copy", "audit"]) {
      assert.doesNotMatch(read(`docs/${page}.md`), /^\| (Exit )?[Cc]ode \|/m, page);
    }
  });
});

describe("supervisors", () => {
  for (const name of UNITS) {
    it(`${name} starts the service again after all other codes`, () => {
      const unit = readUnit(name);
      assert.deepEqual(readNumbers(unit), final);
      assert.match(unit, /^Restart=always$/m);
      assert.match(unit, /^StartLimitIntervalSec=0$/m);
    });
  }

  it("jobs of Kubernetes fail at once with these codes, and are tried again after all others", () => {
    const jobs = ["sqlite-create", "migrate-expand", "migrate-contract"] as const;
    for (const overlay of jobs) {
      const { spec } = find(render(overlay), "Job");
      const [rule, ...others] = spec.podFailurePolicy.rules;
      assert.deepEqual([rule.action, rule.onExitCodes.operator, rule.onExitCodes.values], ["FailJob", "In", final]);
      assert.deepEqual(others, []);
      // The policy needs it.
      assert.equal(spec.template.spec.restartPolicy, "Never");
    }
  });

  it("a unit with other codes is found: the control", () => {
    assert.notDeepEqual(readNumbers(readUnit("arbor.service").replace("ExitStatus=2 6", "ExitStatus=2 6 8")), final);
    assert.deepEqual(final, [2, 6]);
  });
});

describe("shipped files create no installation by themselves", () => {
  const SERVE = ["serve", "--no-create"];
  for (const name of UNITS) {
    it(name, () => assert.match(readUnit(name), /^ExecStart=\/usr\/bin\/arbor serve --no-create$/m));
  }
  it("the image", () =>
    assert.deepEqual(readExecForm(readLastStage(join(PROJECT, "deploy/container/Containerfile")), "CMD"), SERVE));
  it("compose", () => {
    const env = { ARBOR_BASE_URL: "https://a.example", REGISTRY_URL: "https://b.example" };
    assert.deepEqual(readComposeFile(join(PROJECT, "deploy/compose/compose.yml"), env).services.arbor?.command, SERVE);
  });
  for (const overlay of ["sqlite", "postgresql"] as const) {
    it(`the overlay ${overlay}`, () => {
      assert.deepEqual(podTemplateOf(render(overlay)).spec.containers[0]?.args, SERVE);
    });
  }
  it("npm start does: the control", () => assert.match(JSON.parse(read("package.json")).scripts.start, / serve$/));
});

describe("the unit of several nodes", () => {
  it("is the other one, with settings for each node", () => {
    const lines = (name: string) =>
      readUnit(name)
        .split("\n")
        .filter((line) => !line.startsWith("#"));
    const expected = lines("arbor.service").map((line) =>
      line.replace("platform API", "platform API, node %i").replace("/etc/arbor/arbor.json", "/etc/arbor/%i.json"),
    );
    assert.deepEqual(lines("arbor@.service"), expected);
  });
});
