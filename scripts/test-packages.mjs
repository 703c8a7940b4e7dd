// Runs the tests of what is installed: the image, the unit and the Debian package. They need root, the packages below and
// Debian's mirror. The root file system that they share is made first, so that they do not make it twice.
//   npm run test:packages [-- FILE...]
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { testsIn } from "./test-files.mjs";

const PACKAGES = {
  bubblewrap: "/usr/bin/bwrap",
  buildah: "/usr/bin/buildah",
  curl: "/usr/bin/curl",
  debootstrap: "/usr/sbin/debootstrap",
  "python3-seccomp": "/usr/lib/python3/dist-packages/seccomp*.so",
  systemd: "/usr/bin/systemd-analyze",
};

if (process.getuid() !== 0) fail("must run as root");
const missing = Object.keys(PACKAGES).filter((name) => !exists(PACKAGES[name]));
if (missing.length > 0) fail(`not installed: apt-get install ${missing.join(" ")}`);

const tree = 'await (await import("./test/packages/debian-tree.ts")).getDebianTree()';
run(["--import", "tsx", "--input-type=module", "-e", tree]);
const named = process.argv.slice(2);
run(["scripts/test.mjs", ...(named.length > 0 ? named : testsIn("test/packages", []))]);

function exists(path) {
  return path.includes("*") ? spawnSync("sh", ["-c", `ls ${path}`]).status === 0 : existsSync(path);
}

function run(args) {
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

function fail(reason) {
  console.error(`test-packages: ${reason}`);
  process.exit(2);
}
