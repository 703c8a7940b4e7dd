// The completion scripts, in the shells they are for where those are installed.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Command } from "commander";
import { formatCompletion } from "../../src/cli/completion.js";
import { createProgram } from "../../src/cli/program.js";
import { type Host, startHost } from "../e2e/process.js";
import { spawnSync } from "../support/child-process.js";
import { tempDir } from "../support/temp-dir.js";

const directory = tempDir();
mkdirSync(join(directory, "keys"));
for (const name of ["key one.pem", "key-two.pem"]) writeFileSync(join(directory, name), "");

const scripts = { bash: "", zsh: "", fish: "" };
let host: Host;
before(async () => {
  host = startHost();
  for (const shell of ["bash", "zsh", "fish"] as const) {
    const { code, stdout, stderr } = await host.run(["completion", shell]);
    assert.equal(code, 0, stderr);
    scripts[shell] = stdout;
    writeFileSync(join(directory, `arbor.${shell}`), stdout);
  }
});
after(() => host?.close());

function has(shell: string): boolean {
  return spawnSync(shell, ["--version"]).status === 0;
}

/** What bash offers for the last of `words`, the way it calls a completion function. */
function complete(...words: readonly string[]): string[] {
  const script = `source "$1"; shift
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _arbor
    [[ \${#COMPREPLY[@]} == 0 ]] || printf '%s\\n' "\${COMPREPLY[@]}"`;
  const args = ["--norc", "-c", script, "bash", join(directory, "arbor.bash"), "arbor", ...words];
  const { status, stdout, stderr } = spawnSync("bash", args, { cwd: directory, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  assert.equal(stderr, "");
  return stdout.split("\n").filter((line) => line !== "");
}

describe("bash completes", { skip: !has("bash") && "bash is not installed" }, () => {
  const cases: readonly (readonly [words: readonly string[], offered: readonly string[]])[] = [
    [["ia"], ["iam"]],
    [
      ["iam", "group"],
      ["groups", "group-invites", "group-mappings"],
    ],
    [
      ["iam", "groups", ""],
      ["list", "lookup", "request-access", "get", "check-eligibility", "create", "update", "delete", "-h", "--help"],
    ],
    [["iam", "group-mappings", "u"], []],
    [["iam", "terms", "a"], ["accept"]],
    [["iam", "terms", "create", "--doc"], ["--document-id"]],
    [
      ["iam", "groups", "list", "--page"],
      ["--page-size", "--page-token", "--page-all"],
    ],
    [
      ["iam", "groups", "list", "--output", ""],
      ["table", "wide", "name", "csv", "json", "jsonl", "yaml"],
    ],
    [
      ["iam", "groups", "list", "-o", "j"],
      ["json", "jsonl"],
    ],
    [
      ["iam", "groups", "list", "--output", "="],
      ["table", "wide", "name", "csv", "json", "jsonl", "yaml"],
    ],
    [["iam", "groups", "list", "--output", "=", "y"], ["yaml"]],
    [["iam", "roles", "create", "--capability", "role_bindings.l"], ["role_bindings.list"]],
    [["iam", "identities", "list", "--relationship-type", "aws"], ["aws-identity"]],
    [["iam", "identities", "create", "--service-principal", "mat"], ["materializer"]],
    [["iam", "group-invites", "update", "u", "--no-s"], ["--no-single-use"]],
    [["iam", "groups", "create", "--name", "list", "--desc"], ["--description"]],
    [["iam", "groups", "create", "--name", ""], []],
    [
      ["iam", "groups", "create", "--file", "key"],
      ["key one.pem", "key-two.pem", "keys"],
    ],
    [["admin", "keys", "rotate", "--purpose", "p"], ["page-token"]],
    [
      ["serve", "--root-creation", ""],
      ["users", "owners", "off"],
    ],
    [
      ["completion", ""],
      ["bash", "zsh", "fish", "-h", "--help"],
    ],
    [["nothing", "--of-the-kind", "x"], []],
  ];
  for (const [words, expected] of cases) {
    it(`arbor ${words.join(" ")}`, () => assert.deepEqual(complete(...words).sort(), [...expected].sort()));
  }
});

// What a shell would run in place of the program: names that a careless script would expand or split.
const NAMED = "team a\nteam$(touch made)\nteam`touch made`\nteam;x\nteam'q\nteam/\n";

describe("names", () => {
  it("are asked for by bash, and quoted", { skip: !has("bash") && "bash is not installed" }, () => {
    const script = `source "$1"; arbor() { printf '%s\\n' "$@" > asked; cat names; }
      COMP_WORDS=(arbor iam groups list --children-of te); COMP_CWORD=5; _arbor; printf '%s\\n' "\${COMPREPLY[@]}"`;
    writeFileSync(join(directory, "names"), NAMED);
    const args = ["--norc", "-c", script, "bash", join(directory, "arbor.bash")];
    const { stdout, stderr } = spawnSync("bash", args, { cwd: directory, encoding: "utf8" });
    assert.equal(stderr, "");
    const quoted = ["team\\ a", "team\\$\\(touch\\ made\\)", "team\\`touch\\ made\\`", "team\\;x", "team\\'q", "team/"];
    assert.deepEqual(stdout.trim().split("\n"), quoted);
    assert.equal(readFileSync(join(directory, "asked"), "utf8"), "complete-names\ngroup\n--\nte\n");
    assert.equal(existsSync(join(directory, "made")), false);
  });

  it("are asked for by fish", { skip: !has("fish") && "fish is not installed" }, () => {
    writeFileSync(join(directory, "names"), NAMED);
    const script = `function arbor; printf '%s\\n' $argv > asked; cat names; end
      source ${join(directory, "arbor.fish")}; complete -C 'arbor iam roles get te'`;
    const env = { ...process.env, HOME: directory };
    const { stdout } = spawnSync("fish", ["--no-config", "-c", script], { cwd: directory, encoding: "utf8", env });
    assert.deepEqual(stdout.trim().split("\n").sort(), NAMED.trim().split("\n").sort());
    assert.equal(readFileSync(join(directory, "asked"), "utf8"), "complete-names\nrole\n--\nte\n");
    assert.equal(existsSync(join(directory, "made")), false);
  });

  it("are asked for by zsh", { skip: !has("zsh") && "zsh is not installed" }, () => {
    writeFileSync(join(directory, "names"), NAMED);
    // compadd works within a completion alone, so what it is given is written down.
    const script = `compdef() { : }; arbor() { printf '%s\\n' "$@" > asked; cat names }
      compadd() { printf '%s\\n' "$@" >> added }; source ${join(directory, "arbor.zsh")}
      words=(arbor can me ping.v2.PingService/Ping --group te); CURRENT=6; PREFIX=te; _arbor`;
    const { stderr } = spawnSync("zsh", ["-f", "-c", script], { cwd: directory, encoding: "utf8" });
    assert.equal(stderr, "");
    const added = ["-S", "", "--", "team/", "--", ...NAMED.trim().split("\n").slice(0, -1)];
    assert.deepEqual(readFileSync(join(directory, "added"), "utf8").trim().split("\n"), added);
    assert.equal(readFileSync(join(directory, "asked"), "utf8"), "complete-names\ngroup\n--\nte\n");
    assert.equal(existsSync(join(directory, "made")), false);
  });
});

describe("a script", () => {
  for (const shell of ["bash", "zsh", "fish"] as const) {
    it(`is understood by ${shell}`, { skip: !has(shell) && `${shell} is not installed` }, () => {
      const { status, stderr } = spawnSync(shell, ["-n", join(directory, `arbor.${shell}`)], { encoding: "utf8" });
      assert.deepEqual([status, stderr], [0, ""]);
    });
  }

  it("completes in fish", { skip: !has("fish") && "fish is not installed" }, () => {
    const ask = (line: string) => {
      const script = `source ${join(directory, "arbor.fish")}; complete -C '${line}'`;
      const { stdout } = spawnSync("fish", ["--no-config", "-c", script], {
        encoding: "utf8",
        env: { ...process.env, HOME: directory },
      });
      return stdout
        .trim()
        .split("\n")
        .map((word) => word.split("\t")[0]);
    };
    assert.deepEqual(ask("arbor iam group").sort(), ["group-invites", "group-mappings", "groups"]);
    assert.deepEqual(ask("arbor iam groups list -o j").sort(), ["json", "jsonl"]);
    assert.deepEqual(ask("arbor iam groups list --page-a"), ["--page-all"]);
  });

  it("knows every command and every option there is", async () => {
    const arbor = await createProgram();
    const paths: string[] = [];
    const walk = (command: Command, path: string) => {
      for (const { long } of command.options.filter(({ hidden }) => !hidden)) {
        for (const [shell, script] of Object.entries(scripts)) {
          assert.ok(
            script.includes(shell === "fish" ? `-l ${long?.slice(2)} ` : `${long}`),
            `${shell}: ${path} ${long}`,
          );
        }
      }
      for (const sub of command.createHelp().visibleCommands(command)) {
        const at = `${path} ${sub.name()}`.trim();
        paths.push(at);
        walk(sub, at);
      }
    };
    walk(arbor, "");
    assert.ok(paths.length > 45);
    for (const path of paths) {
      for (const script of [scripts.bash, scripts.zsh]) assert.ok(script.includes(`('${path}')`), path);
      assert.ok(scripts.fish.includes(`__arbor_at \\'${path}\\''`), path);
    }
  });

  it("is safe whatever a command is described by", () => {
    const arbor = new Command("arbor");
    arbor.command("it's").description("what's `this`: $(touch x) \"and\" \\that'").option("--a <it's|b c>", "x'y");
    for (const shell of ["bash", "zsh", "fish"] as const) {
      if (!has(shell)) continue;
      const file = join(directory, `odd.${shell}`);
      writeFileSync(
        file,
        formatCompletion(arbor, shell, () => undefined),
      );
      const { status, stderr } = spawnSync(shell, ["-n", file], { encoding: "utf8" });
      assert.deepEqual([status, stderr], [0, ""], shell);
    }
  });

  it("is for a shell that is known", async () => {
    const { code, stderr } = await host.run(["completion", "tcsh"]);
    assert.equal(code, 2);
    assert.match(stderr, /Allowed choices are bash, zsh, fish/);
  });
});
