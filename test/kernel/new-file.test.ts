// Files with secrets are created where no other user could put another file in their place.
import assert from "node:assert/strict";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { assertOwnDirectory, openNewFile } from "../../src/kernel/new-file.js";
import { tempDir } from "../support/temp-dir.js";

const isRoot = process.getuid?.() === 0;
/** Debian's nobody. */
const OTHER = 65_534;
const GROUP = 4_242;

interface Case {
  readonly name: string;
  /** Makes the directory and returns the one to write to. */
  readonly make: (root: string) => string;
  readonly problem?: RegExp;
  /** Only root can give files away. */
  readonly needsRoot?: boolean;
}

function directory(path: string, mode: number, owner?: readonly [uid: number, gid: number]): string {
  mkdirSync(path);
  chmodSync(path, mode);
  if (owner !== undefined) chownSync(path, ...owner);
  return path;
}

const cases: readonly Case[] = [
  { name: "a private directory", make: (root) => directory(join(root, "a"), 0o700) },
  { name: "one that others may read", make: (root) => directory(join(root, "a"), 0o755) },
  { name: "one in a directory where nobody renames what others have", make: (root) => sticky(root) },
  {
    name: "one that is missing, in a private directory",
    make: (root) => join(directory(join(root, "a"), 0o700), "b", "c"),
  },
  {
    name: "one below a directory of root that a group may write to, as volumes are mounted",
    make: (root) => directory(join(directory(join(root, "a"), 0o2775, [0, GROUP]), "b"), 0o700),
    needsRoot: true,
  },
  {
    name: "one that the group of its owner may write to",
    make: (root) => directory(join(root, "a"), 0o775),
  },
  {
    name: "one that another group may write to",
    make: (root) => directory(join(root, "a"), 0o770, [0, GROUP]),
    problem: /can be written by other users \(mode 0770\)/,
    needsRoot: true,
  },
  {
    name: "one that all may write to",
    make: (root) => directory(join(root, "a"), 0o777),
    problem: /can be written by other users \(mode 0777\)/,
  },
  {
    name: "one that all may write to, although they may not rename",
    make: (root) => directory(join(root, "a"), 0o1777),
    problem: /can be written by other users \(mode 1777\)/,
  },
  {
    name: "one of another user",
    make: (root) => directory(join(root, "a"), 0o700, [OTHER, OTHER]),
    problem: /a belongs to user 65534/,
    needsRoot: true,
  },
  {
    name: "one in a directory of another user",
    make: (root) => directory(join(directory(join(root, "a"), 0o755, [OTHER, OTHER]), "b"), 0o700, [0, 0]),
    problem: /a belongs to user 65534/,
    needsRoot: true,
  },
  {
    name: "one that is missing, in a directory of another user",
    make: (root) => join(directory(join(root, "a"), 0o755, [OTHER, OTHER]), "b"),
    problem: /a belongs to user 65534/,
    needsRoot: true,
  },
  {
    name: "one in a directory that all may write to",
    make: (root) => directory(join(directory(join(root, "a"), 0o777), "b"), 0o700),
    problem: /a can be written by other users \(mode 0777\)/,
  },
  {
    name: "a link to one of another user",
    make(root) {
      symlinkSync(directory(join(root, "a"), 0o700, [OTHER, OTHER]), join(root, "link"));
      return join(root, "link");
    },
    problem: /a belongs to user 65534/,
    needsRoot: true,
  },
  {
    name: "a link in a directory of another user, who can let it lead elsewhere",
    make(root) {
      const link = join(directory(join(root, "a"), 0o755, [OTHER, OTHER]), "link");
      symlinkSync(directory(join(root, "b"), 0o700), link);
      return link;
    },
    problem: /a belongs to user 65534/,
    needsRoot: true,
  },
  {
    name: "one below a link of another user, where nobody renames what others have",
    make(root) {
      directory(join(root, "tmp"), 0o1777);
      const link = join(root, "tmp", "link");
      symlinkSync(directory(join(root, "b"), 0o700), link);
      lchownSync(link, OTHER, OTHER);
      return directory(join(root, "tmp", "link", "c"), 0o700);
    },
    problem: /link is a link of user 65534/,
    needsRoot: true,
  },
  {
    name: "a link to a link of its owner",
    make(root) {
      symlinkSync(directory(join(root, "a"), 0o700), join(root, "one"));
      symlinkSync("./one", join(root, "two"));
      return join(root, "two");
    },
  },
  {
    name: "a link to itself",
    make(root) {
      symlinkSync("loop", join(root, "loop"));
      return join(root, "loop");
    },
    problem: /loop has too many symbolic links/,
  },
];

function sticky(root: string): string {
  return directory(join(directory(join(root, "tmp"), 0o1777), "mine"), 0o700);
}

describe("a new file with a secret", () => {
  for (const { name, make, problem, needsRoot = false } of cases) {
    it(`is ${problem === undefined ? "" : "not "}written to ${name}`, {
      skip: needsRoot && !isRoot && "needs root",
    }, () => {
      const target = make(realpathSync(tempDir()));
      if (problem === undefined) assertOwnDirectory(target);
      else assert.throws(() => assertOwnDirectory(target), problem);
      if (!existsSync(target)) return;
      const file = join(target, "secret");
      if (problem === undefined) {
        closeSync(openNewFile(file));
        assert.equal(lstatSync(file).mode & 0o777, 0o600);
      } else {
        assert.throws(() => openNewFile(file), { code: 9, message: /^Precondition failed: / });
        assert.equal(existsSync(file), false);
      }
    });
  }

  it("is never one that is there already, nor what a link leads to", () => {
    const root = tempDir();
    const [kept, link, dangling] = ["kept", "link", "dangling"].map((name) => join(root, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(kept, "another's");
    symlinkSync(kept, link);
    symlinkSync(join(root, "nothing"), dangling);
    for (const file of [kept, link, dangling]) assert.throws(() => openNewFile(file), { code: "EEXIST" });
    assert.equal(readFileSync(kept, "utf8"), "another's");
    assert.equal(existsSync(join(root, "nothing")), false);
  });
});
