// The Debian package: built in two versions, installed, upgraded, removed and purged in a root file system of Debian.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { PROJECT } from "../support/project.js";
import { memoryDir, tempDir } from "../support/temp-dir.js";
import { getDebianTree } from "./debian-tree.js";
import { type Outcome, runIn, type Sandbox, startIn } from "./sandbox.js";
import { walkThrough } from "./walkthrough.js";

const run = promisify(execFile);
const BUILD = join(PROJECT, "deploy/debian/build.mjs");
const [OLD, NEW] = ["0.5.0", "1.19.0"];
const SETTINGS = "etc/arbor/arbor.json";
const UNIT = "usr/lib/systemd/system/arbor.service";
const TEMPLATE = "usr/lib/systemd/system/arbor@.service";
const ENABLED = "etc/systemd/system/multi-user.target.wants/arbor.service";
const DATA = "var/lib/arbor";
/** What the old version has in place of this setting. */
const OLD_LISTEN = "127.0.0.1:8081";

// Packages and the root file system into which they are unpacked.
const scratch = memoryDir(2 * 2 ** 30);
const packages = join(scratch, "packages");
const root = join(scratch, "root");
const at = (path: string) => join(root, path);
const system: Sandbox = {
  root,
  mounts: { "/packages": packages },
  env: {
    PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    DEBIAN_FRONTEND: "noninteractive",
    LC_ALL: "C",
  },
};
const must = async (sandbox: Sandbox, ...command: readonly string[]): Promise<Outcome> => {
  const outcome = await runIn(sandbox, command);
  assert.equal(outcome.code, 0, `${command.join(" ")}: ${outcome.stderr}${outcome.stdout}`);
  return outcome;
};
const install = (version: string) => must(system, "dpkg", "--install", `/packages/${nameOf("arbor", version)}`);

let architecture = "";
const nameOf = (name: string, version: string) => `${name}_${version}_${architecture}.deb`;

before(async () => {
  architecture = (await run("dpkg", ["--print-architecture"])).stdout.trim();
  mkdirSync(packages);
  // What was built before may be of other sources.
  await run("npm", ["run", "-s", "build"], { cwd: PROJECT });
  await Promise.all([
    run(process.execPath, [BUILD, "--out", packages, "--package-version", NEW]),
    buildNode(),
    run("cp", ["--archive", await getDebianTree(), root]),
  ]);
  await buildOld();
  // The tree is deleted in the end, so nothing needs to wait until a disk has it.
  writeFileSync(at("etc/dpkg/dpkg.cfg.d/fast"), "force-unsafe-io\n");
  await must(system, "dpkg", "--install", `/packages/${nameOf("nodejs", nodeVersion())}`);
});
after(() => rmSync(scratch, { recursive: true, force: true }));

const nodeVersion = () => process.version.slice(1);

// Debian 12 has Node 18 alone, so the Node that runs this test is the package nodejs.
async function buildNode(): Promise<void> {
  const stage = join(scratch, "nodejs");
  const control = {
    Package: "nodejs",
    Version: nodeVersion(),
    Architecture: architecture,
    Maintainer: "a <a@example.com>",
  };
  mkdirSync(join(stage, "usr/bin"), { recursive: true });
  mkdirSync(join(stage, "DEBIAN"));
  await run("cp", [process.execPath, join(stage, "usr/bin/node")]);
  writeFileSync(join(stage, "DEBIAN/control"), formatControl({ ...control, Description: "Node" }));
  const options = ["--root-owner-group", "-Znone", "--build", stage];
  await run("dpkg-deb", [...options, join(packages, nameOf("nodejs", nodeVersion()))]);
}

const formatControl = (fields: Record<string, string>) =>
  Object.entries(fields)
    .map(([key, value]) => `${key}: ${value}\n`)
    .join("");

// The version before, with other settings and a file that the new one lacks.
async function buildOld(): Promise<void> {
  const stage = join(scratch, "old");
  await run("dpkg-deb", ["--raw-extract", join(packages, nameOf("arbor", NEW)), stage]);
  const control = join(stage, "DEBIAN/control");
  writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: .*$/m, `Version: ${OLD}`));
  const settings = JSON.parse(readFileSync(join(stage, SETTINGS), "utf8"));
  writeFileSync(join(stage, SETTINGS), JSON.stringify({ ...settings, listen: OLD_LISTEN }));
  writeFileSync(join(stage, "usr/lib/arbor/dist/removed.js"), "");
  const options = ["--root-owner-group", "-Zgzip", "-z1", "--build", stage];
  await run("dpkg-deb", [...options, join(packages, nameOf("arbor", OLD))]);
}

/** Which user and group own a path, and its mode. */
async function ownership(path: string): Promise<string> {
  return (await must(system, "stat", "--format=%U:%G %a", `/${path}`)).stdout.trim();
}

async function status(): Promise<string> {
  const { stdout } = await runIn(system, [
    "dpkg-query",
    "--show",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query replaces them
    "--showformat=${db:Status-Status} ${Version}",
    "arbor",
  ]);
  return stdout;
}

describe("the Debian package", () => {
  const skip = existsSync("/usr/bin/lintian") ? false : "needs lintian";
  test("has nothing that lintian calls an error", { skip }, async () => {
    // Of dependencies: they stay as their authors published them, in the package of the service.
    const dismissed = "embedded-javascript-library,embedded-library,privacy-breach-generic,unstripped-binary-or-object";
    const file = join(packages, nameOf("arbor", NEW));
    const args = ["--allow-root", "--fail-on", "error", "--suppress-tags", dismissed, file];
    const { stdout } = await run("lintian", args, { maxBuffer: 2 ** 26 }).catch(({ stdout }) => ({ stdout }));
    const errors = (stdout as string).split("\n").filter((line) => line.startsWith("E: "));
    assert.deepEqual(errors, []);
  });

  test("has a unit that systemd verifies, where it is installed", async () => {
    const tree = join(scratch, "extracted");
    await run("dpkg-deb", ["--extract", join(packages, nameOf("arbor", NEW)), tree]);
    const overlay = `mount -t overlay -o lowerdir=${tree}/usr:/usr overlay /usr`;
    const verify = (more = "") =>
      run("unshare", ["--mount", "sh", "-euc", `${overlay}\n${more}systemd-analyze verify arbor.service`]);
    assert.deepEqual(await verify(), { stdout: "", stderr: "" });
    const node = await run("unshare", ["--mount", "sh", "-euc", `${overlay}\nsystemd-analyze verify arbor@a.service`]);
    assert.deepEqual(node, { stdout: "", stderr: "" });
    const dropIn = "/run/systemd/system/arbor.service.d";
    const example = "/usr/share/doc/arbor/examples/postgresql.conf";
    const withDropIn = `mount -t tmpfs tmpfs /run\nmkdir -p ${dropIn}\ncp ${example} ${dropIn}/\n`;
    assert.deepEqual(await verify(withDropIn), { stdout: "", stderr: "" });
    const misspelt = `printf '[Service]\\nRestrictNamespace=yes\\n' >${dropIn}/postgresql.conf\n`;
    assert.match((await verify(withDropIn + misspelt)).stderr, /RestrictNamespace/, "the control");
  });

  test("is not installed where Node is too old: the control of its dependency", async () => {
    const { stdout } = await run("dpkg-deb", ["--field", join(packages, nameOf("arbor", NEW)), "Depends"]);
    const [, required = ""] = /nodejs \(>= ([\d.]+)\)/.exec(stdout) ?? [];
    assert.match(required, /^(20\.19|22)$/);
    await run("dpkg", ["--compare-versions", nodeVersion(), "ge", required]);
    await assert.rejects(run("dpkg", ["--compare-versions", "18.20.4+dfsg-1~deb12u1", "ge", required]));
  });
});

// Each step continues on what the one before has left.
describe("in a Debian without systemd, the package", () => {
  const service: Sandbox = { ...system, env: { ...system.env, ARBOR_CONFIG: `/${SETTINGS}`, NODE_ENV: "production" } };
  const operator = async (): Promise<Sandbox> => {
    const { stdout } = await must(system, "sh", "-c", "echo $(id -u arbor):$(id -g arbor)");
    return { ...service, user: stdout.trim() };
  };
  let masterKey: Buffer;

  test("is installed: user, modes, unit, and nothing is started", async () => {
    await install(OLD);
    assert.equal(await status(), `installed ${OLD}`);
    assert.equal(await ownership(DATA), "arbor:arbor 700");
    assert.deepEqual(readdirSync(at(DATA)), []);
    assert.equal(await ownership(SETTINGS), "root:root 644");
    assert.equal(await ownership(UNIT), "root:root 644");
    assert.equal(await ownership(TEMPLATE), "root:root 644");
    assert.equal(await ownership("usr/lib/arbor/dist/main.js"), "root:root 755");
    const page = readFileSync(join(PROJECT, "docs/settings.md"), "utf8");
    assert.equal(readFileSync(at("usr/share/doc/arbor/docs/settings.md"), "utf8"), page);
    assert.match(readFileSync(at("usr/lib/arbor/dist/site/index.html"), "utf8"), /<h1>Documentation<\/h1>/);
    const { stdout: entry } = await must(system, "getent", "passwd", "arbor");
    assert.match(entry, /^arbor:x:[1-9]\d{2}:[1-9]\d{2}:[^:]*:\/var\/lib\/arbor:\/usr\/sbin\/nologin\n$/);
    assert.ok(lstatSync(at(ENABLED)).isSymbolicLink(), "it is enabled for the next start of a system with systemd");
    const { stdout: others } = await must(
      system,
      "find",
      "/usr/lib/arbor",
      "(",
      "-not",
      "-user",
      "root",
      "-o",
      "-perm",
      "/022",
      ")",
      "-not",
      "-type",
      "l",
    );
    assert.equal(others, "");
  });

  test("serves with its settings, as its user, and so do commands on the host", async () => {
    const sandbox = await operator();
    const serve =
      readFileSync(at(UNIT), "utf8")
        .match(/^ExecStart=(.*)$/m)?.[1]
        ?.split(" ") ?? [];
    const early = await runIn({ ...sandbox, cwd: `/${DATA}` }, serve);
    assert.equal(early.code, 6, early.stderr);
    assert.match(early.stderr, /there is no installation in \/var\/lib\/arbor: .* `arbor bootstrap`/);
    const { code, stdout, stderr } = await runIn({ ...sandbox, cwd: `/${DATA}` }, [
      ...["arbor", "bootstrap", "--org", "example.com", "--json"],
    ]);
    assert.equal(code, 0, stderr);
    const running = await startIn({ ...sandbox, cwd: `/${DATA}` }, serve);
    try {
      await running.waitForOutput(new RegExp(`^arbor listening on http://${OLD_LISTEN}$`, "m"));
      const { token, group } = JSON.parse(stdout) as { token: string; group: string };
      await walkThrough({ url: `http://${OLD_LISTEN}`, token, group, prefix: running.inNetwork });
      assert.equal((await running.stop()).code, 0);
    } finally {
      running.kill();
    }
    assert.equal(await ownership(`${DATA}/master.key`), "arbor:arbor 600");
    masterKey = readFileSync(at(`${DATA}/master.key`));
  });

  test("is upgraded: changed settings, a disabled unit and the data stay, old files go", async () => {
    writeFileSync(at(SETTINGS), JSON.stringify({ data: `/${DATA}`, listen: "127.0.0.1:8082" }));
    rmSync(at(ENABLED));
    await must(system, "dpkg", "--force-confold", "--install", `/packages/${nameOf("arbor", NEW)}`);
    assert.equal(await status(), `installed ${NEW}`);
    assert.equal(JSON.parse(readFileSync(at(SETTINGS), "utf8")).listen, "127.0.0.1:8082");
    assert.equal(existsSync(at(ENABLED)), false, "an administrator disabled it");
    assert.equal(existsSync(at("usr/lib/arbor/dist/removed.js")), false);
    assert.deepEqual(readFileSync(at(`${DATA}/master.key`)), masterKey);
    const { stdout } = await must(await operator(), "arbor", "audit", "verify");
    assert.match(stdout, /^[0-9a-f]{40}: \d+ sealed rows, .* 0 unsealed$/m);
  });

  test("is removed: settings, data and user stay", async () => {
    await must(system, "dpkg", "--remove", "arbor");
    assert.equal(await status(), `config-files ${NEW}`);
    assert.equal(existsSync(at("usr/lib/arbor")), false);
    assert.equal(existsSync(at("usr/bin/arbor")), false);
    assert.equal(JSON.parse(readFileSync(at(SETTINGS), "utf8")).listen, "127.0.0.1:8082");
    assert.deepEqual(readFileSync(at(`${DATA}/master.key`)), masterKey);
  });

  test("is installed again on the data that it left", async () => {
    await install(NEW);
    assert.deepEqual(readFileSync(at(`${DATA}/master.key`)), masterKey);
    assert.equal(existsSync(at("etc/systemd/system/arbor.service")), false, "it is not masked");
    await must(await operator(), "arbor", "audit", "verify");
  });

  test("is purged: settings and data go, the user stays", async () => {
    await must(system, "dpkg", "--purge", "arbor");
    assert.equal((await runIn(system, ["dpkg-query", "--show", "arbor"])).code, 1);
    const left = [
      "etc/arbor",
      DATA,
      "usr/lib/arbor",
      UNIT,
      TEMPLATE,
      ENABLED,
      "usr/share/doc/arbor",
      "etc/systemd/system/arbor.service",
    ];
    assert.deepEqual(
      left.filter((path) => existsSync(at(path)) || isLink(at(path))),
      [],
    );
    const { stdout } = await must(
      system,
      "find",
      "/etc",
      "/usr",
      "/var",
      "-name",
      "*arbor*",
      "-newer",
      "/etc/hostname",
    );
    assert.equal(stdout, "");
    await must(system, "getent", "passwd", "arbor");
  });
});

describe("where systemd runs, the package", () => {
  // systemd itself cannot run here: programs of its names note how they are called.
  const CALLS = "var/calls";
  const calls = () => (existsSync(at(CALLS)) ? readFileSync(at(CALLS), "utf8").trim().split("\n") : []);
  const withSystemd: Sandbox = {
    ...system,
    mounts: { ...system.mounts, "/run/systemd/system": tempDir(), "/usr/local/sbin": join(scratch, "programs") },
  };
  const step = async (...args: readonly string[]) => {
    rmSync(at(CALLS), { force: true });
    await must(withSystemd, "dpkg", ...args);
    // This one is from deb-systemd-helper, which knows by itself when systemd must read its units again.
    return calls().filter((call) => call !== "systemctl daemon-reload" && call !== "");
  };

  before(() => {
    mkdirSync(join(scratch, "programs"));
    for (const name of ["systemctl", "deb-systemd-invoke"]) {
      const script = `#!/bin/sh\necho ${name} "$@" >>/${CALLS}\n`;
      writeFileSync(join(scratch, "programs", name), script, { mode: 0o755 });
    }
    mkdirSync(at("run/systemd/system"), { recursive: true });
  });

  test("starts the service when it is installed, stops it for an upgrade and before removal", async () => {
    const started = ["systemctl --system daemon-reload", "deb-systemd-invoke start arbor.service"];
    const stopped = "deb-systemd-invoke stop arbor.service arbor@*.service";
    const file = (version: string) => `/packages/${nameOf("arbor", version)}`;
    assert.deepEqual(await step("--install", file(OLD)), started);
    assert.deepEqual(await step("--install", file(NEW)), [stopped, ...started]);
    assert.deepEqual(await step("--remove", "arbor"), [stopped, "systemctl --system daemon-reload"]);
    assert.deepEqual(await step("--purge", "arbor"), []);
  });

  test("starts the enabled ones of several nodes again after an upgrade, and forgets them when it is purged", async () => {
    const file = (version: string) => `/packages/${nameOf("arbor", version)}`;
    await step("--install", file(OLD));
    const [wants = ""] = ENABLED.split("/arbor.service");
    const nodes = ["arbor@a.service", "arbor@b.service"];
    for (const name of nodes) symlinkSync(`/${TEMPLATE}`, at(`${wants}/${name}`));
    const calls = await step("--install", file(NEW));
    assert.deepEqual(calls.at(-1), `deb-systemd-invoke start arbor.service ${nodes.join(" ")}`);
    await step("--remove", "arbor");
    assert.ok(
      nodes.every((name) => isLink(at(`${wants}/${name}`))),
      "a removed package keeps its settings",
    );
    await step("--purge", "arbor");
    assert.deepEqual(
      nodes.filter((name) => isLink(at(`${wants}/${name}`))),
      [],
    );
  });
});

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}
