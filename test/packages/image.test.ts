// The image of the Containerfile: built by buildah, run without root and without a file system to write to.
import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { type Builder, createBuilder, type ImageConfig } from "./image.js";
import { type Running, runIn, type Sandbox, startIn } from "./sandbox.js";
import { walkThrough } from "./walkthrough.js";

const CONTAINERFILE = join(PROJECT, "deploy/container/Containerfile");
const BEHIND_PROXY = { ARBOR_BEHIND_PROXY: "true" };

let builder: Builder;
let root: string;
let config: ImageConfig;
before(async () => {
  builder = await createBuilder(CONTAINERFILE);
  ({ root, config } = await builder.build(CONTAINERFILE));
});
after(() => builder?.close());

/** A container of the image as engines run it, with a new volume. */
function container(more: Readonly<Record<string, string>> = {}, of = { root, config }): Sandbox {
  const mounts: Record<string, string> = {};
  for (const path of Object.keys(of.config.Volumes)) mounts[path] = newVolume(join(of.root, path));
  return {
    root: of.root,
    readOnly: true,
    mounts,
    user: of.config.User,
    env: { ...Object.fromEntries(of.config.Env.map((text) => text.split("=", 2))), ...more },
    cwd: of.config.WorkingDir,
  };
}

// A volume takes owner and mode from the directory of the image.
function newVolume(path: string): string {
  const { uid, gid, mode } = lstatSync(path);
  const volume = join(tempDir(), "volume");
  mkdirSync(volume);
  chmodSync(volume, mode & 0o7777);
  chownSync(volume, uid, gid);
  chmodSync(join(volume, ".."), 0o755);
  return volume;
}

const command = (of = config) => [...of.Entrypoint, ...of.Cmd];

describe("the image", () => {
  test("says how it is run", () => {
    assert.match(config.User, /^[1-9]\d*:[1-9]\d*$/, "numbers that are not root's");
    assert.deepEqual([config.Entrypoint, config.Cmd], [["arbor"], ["serve", "--no-create"]]);
    assert.deepEqual(Object.keys(config.Volumes), ["/data"]);
    assert.deepEqual(Object.keys(config.ExposedPorts).sort(), ["8080/tcp", "9464/tcp"]);
    assert.equal(config.Labels["org.opencontainers.image.licenses"], "Apache-2.0");
  });

  test("has production dependencies alone, all of them, and no file of a checkout beside", () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8"));
    const modules = join(root, "usr/lib/arbor/node_modules");
    const present = (names: object) => Object.keys(names).filter((name) => existsSync(join(modules, name)));
    assert.deepEqual(present(dependencies), Object.keys(dependencies));
    // Types are optional peers of packages that run.
    const notRun = present(devDependencies).filter((name) => !name.startsWith("@types/"));
    assert.deepEqual(notRun, []);
    const files = "CHANGELOG.md LICENSE README.md dist docs gen healthcheck.mjs node_modules package.json proto";
    assert.equal(readdirSync(join(root, "usr/lib/arbor")).sort().join(" "), files);
    assert.equal(existsSync(join(root, "src")), false);
  });

  test("has nothing that its user may change, but the volume", () => {
    const home = join(root, "usr/lib/arbor");
    const found = readdirSync(home, { recursive: true, encoding: "utf8" }).filter((path) => {
      const { mode, uid } = lstatSync(join(home, path));
      return uid !== 0 || ((mode & 0o022) !== 0 && !lstatSync(join(home, path)).isSymbolicLink());
    });
    assert.deepEqual(found, []);
  });
});

describe("a container without root on a read-only file system", () => {
  let running: Running | undefined;
  after(() => running?.kill());

  test("refuses to listen to other machines without TLS, unless a proxy is said to end it", async () => {
    const { code, stderr } = await runIn(container(), command());
    assert.equal(code, 2);
    assert.match(stderr, /needs TLS, or --behind-proxy/);
  });

  test("cannot write outside of the volume and /tmp", async () => {
    const write = (path: string) =>
      runIn(container(), ["node", "-e", `require("node:fs").writeFileSync(${JSON.stringify(path)}, "")`]);
    for (const path of ["/data/file", "/tmp/file"]) assert.equal((await write(path)).code, 0, path);
    for (const path of ["/file", "/usr/lib/arbor/file", "/etc/file", "/var/tmp/file"]) {
      assert.match((await write(path)).stderr, /EROFS/, path);
    }
  });

  test("creates nothing by itself, is bootstrapped, starts, answers over REST and gRPC, and drains at SIGTERM", async () => {
    const sandbox = container(BEHIND_PROXY);
    const early = await runIn(sandbox, command());
    assert.equal(early.code, 6, "an empty volume is no installation");
    assert.match(early.stderr, /there is no installation in \/data\/arbor: .* create it with `arbor bootstrap`/);
    const bootstrap = [...config.Entrypoint, "bootstrap", "--org", "example.com", "--json"];
    const { code, stdout, stderr } = await runIn(sandbox, bootstrap);
    assert.equal(code, 0, stderr);
    const { token, group } = JSON.parse(stdout) as { token: string; group: string };
    running = await startIn(sandbox, command());
    await running.waitForOutput(/^arbor listening on http:\/\/0\.0\.0\.0:8080$/m);
    const status = running.readStatus();
    assert.match(status, /^Uid:\t65532\t65532\t65532\t65532$/m);
    assert.match(status, /^CapEff:\t0+$/m);
    assert.match(status, /^NoNewPrivs:\t1$/m);

    const url = "http://127.0.0.1:8080";
    await walkThrough({ url, token, group, prefix: running.inNetwork, errorDomain: "iam.0.0.0.0" });

    const [, ...check] = config.Healthcheck.Test;
    assert.deepEqual(await running.execute(check), { code: 0, stdout: "", stderr: "" });
    const scrape = `fetch("http://127.0.0.1:9464/metrics").then(async (r) => console.log(await r.text()))`;
    assert.match((await running.execute(["node", "-e", scrape])).stdout, /^arbor_build_info\{/m);

    const volume = sandbox.mounts?.["/data"] ?? "";
    assert.deepEqual(readdirSync(volume), ["arbor"]);
    assert.equal(lstatSync(join(volume, "arbor")).mode & 0o777, 0o700);
    const ended = await running.stop();
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stderr, /"msg":"stopping"/);
  });

  test("fails its health check when nothing listens", async () => {
    const [, ...check] = config.Healthcheck.Test;
    const { code, stderr } = await runIn(container(BEHIND_PROXY), check);
    assert.equal(code, 1);
    assert.match(stderr, /ECONNREFUSED/);
  });
});

describe("an image of a Containerfile with a fault: the controls", () => {
  const alterContainerfile = async (from: string | RegExp, to: string) => {
    const original = readFileSync(CONTAINERFILE, "utf8");
    const content = original.replace(from, to);
    assert.notEqual(content, original);
    const file = join(tempDir(), "Containerfile");
    writeFileSync(file, content);
    return builder.build(file);
  };

  test("without its dependencies it does not start", async () => {
    const broken = await alterContainerfile(
      /(COPY --from=build \/image\/usr\/ .*\n)/,
      "$1RUN rm -r /usr/lib/arbor/node_modules\n",
    );
    const { code, stderr } = await runIn(container(BEHIND_PROXY, broken), command(broken.config));
    assert.equal(code, 1);
    assert.match(stderr, /Cannot find (module|package)/);
  });

  test("with a volume of root it does not start", async () => {
    const broken = await alterContainerfile("--chown=65532:65532 ", "");
    const { code, stderr } = await runIn(container(BEHIND_PROXY, broken), command(broken.config));
    assert.equal(code, 2);
    assert.match(stderr, /ARBOR_DATA: cannot use \/data\S*: permission denied/);
  });
});
