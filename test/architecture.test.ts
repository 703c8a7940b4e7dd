// Holds the tree to docs/architecture.md: who may import whom, and no cycles.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { PROJECT } from "./support/project.js";

// What each room may import besides itself: other rooms or files of src, prefixes of `#gen/`, packages.
// `types:` allows a module for its types alone. Features import the values of kinds from the store
// (docs/adr/0027-kinds-as-values.md). The longest path that begins a file's path is its room.
const feature = ["kernel", "pipeline", "types:store", "store/iam", "#gen", "@bufbuild/protobuf"];
const frontEnd = ["transport/http", "codec", "kernel", "pipeline", "@bufbuild/protobuf", "node:"];
const rules: Record<string, readonly string[]> = {
  kernel: [
    ...["#gen/google/rpc", "@connectrpc/connect", "re2js", "node:crypto", "node:fs", "node:module", "node:net"],
    "node:path",
  ],
  config: ["kernel", "leven", "node:"],
  jobs: ["types:store"],
  outbound: ["kernel", "node:"],
  telemetry: ["kernel", "pino", "prom-client", "sonic-boom", "@opentelemetry", "node:"],
  store: [
    "kernel",
    "drizzle-orm",
    "types:better-sqlite3",
    "pg",
    "node:crypto",
    "node:fs",
    "node:module",
    "node:os",
    "node:path",
    "node:timers/promises",
    "types:node:tls",
    "node:url",
  ],
  pipeline: [
    "kernel",
    "codec/fields",
    "codec/json-writer",
    "telemetry",
    "types:store",
    "store/iam/groups",
    "#gen",
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "lru-cache",
    "node:crypto",
  ],
  iam: [...feature, "node:crypto"],
  // Answers about everything that has a uid or a name.
  "iam/access": [...feature, "iam", "store"],
  registry: [
    ...feature,
    "store/registry",
    "iam/groups",
    "types:issuer/keys",
    "types:issuer/sts",
    "jobs",
    "@connectrpc/connect",
    "node:",
  ],
  vulnerabilities: [...feature, "store/advisories", "iam/groups"],
  events: [
    ...feature,
    "audit/event-tail",
    "iam/groups",
    "iam/identities",
    "codec/fields",
    "jobs",
    "types:issuer/keys",
    "types:outbound",
    "node:crypto",
    "node:events",
  ],
  issuer: [
    ...feature,
    "types:iam/directories",
    "iam/people",
    "iam/identities",
    "iam/identity-providers",
    "iam/roles",
    "iam/groups",
    "jobs",
    "outbound",
    "@connectrpc/connect",
    "jose",
    "lru-cache",
    "openid-client",
    "node:",
  ],
  audit: [
    "kernel",
    "jobs",
    "pipeline",
    "types:store",
    "store/audit/events",
    "store/iam/groups",
    "#gen",
    "@bufbuild/protobuf",
    "jose",
    "node:crypto",
  ],
  codec: ["kernel", "#gen/google", "@bufbuild/protobuf", "@connectrpc/connect"],
  "transport/http": [
    "kernel",
    "codec",
    "pipeline",
    "telemetry",
    "#gen/google",
    "@bufbuild/protobuf",
    "@connectrpc",
    "node:",
  ],
  "transport/protocol": [...frontEnd, "@connectrpc"],
  "transport/rest": [
    ...["transport/http", "transport/protocol", "types:transport/serve", "codec", "kernel", "types:pipeline"],
    ...["@bufbuild/protobuf", "leven"],
  ],
  "transport/services": [
    "kernel",
    "pipeline",
    "#gen/google/rpc",
    "#gen/grpc",
    "#gen/health",
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "node:events",
  ],
  "transport/openapi": [...frontEnd, "#gen/google/rpc"],
  transport: [
    "transport/protocol",
    "transport/services",
    "transport/http",
    "codec",
    "kernel",
    "pipeline",
    "telemetry",
    "@bufbuild/protobuf",
  ],
  // With a token, over the network: what loads no store and no native module.
  "cli/remote": [
    "audit/chain",
    "audit/verify",
    "cli/errors",
    "cli/flag-file",
    "cli/lazy-command",
    "cli/output",
    "cli/shared-file",
    "client",
    "codec",
    "kernel",
    "#gen",
    "@bufbuild/protobuf",
    "@connectrpc",
    "commander",
    "leven",
    "open",
    "yaml",
    "node:",
  ],
  // The command line itself and what commands print.
  cli: [
    "cli/remote",
    "cli/host",
    "config/command-variables",
    "config/names",
    "types:audit/verify",
    "kernel",
    "#gen",
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "commander",
    "jq-wasm",
    "fast-string-width",
    "yaml",
    "node:",
  ],
  client: ["#gen", "@bufbuild/protobuf", "@connectrpc", "jose", "node:"],
  scim: [
    ...feature.filter((one) => one !== "@bufbuild/protobuf"),
    "scim/protocol",
    "iam/identity-providers",
    "iam/directories",
    "iam/identities",
    "iam/scim-users",
    "outbound/slots",
    "@connectrpc/connect",
    "node:util",
  ],
  // What the protocol says, whatever is stored.
  "scim/protocol": ["kernel"],
};
const rooms = [...Object.keys(rules), "app", "cli/host"].sort((one, other) => other.length - one.length);

interface Import {
  readonly file: string;
  readonly target: string;
  readonly typesOnly: boolean;
  /** Whether the module is loaded when the expression is evaluated, not with the file. */
  readonly dynamic: boolean;
}

const sources = filesIn("src");
const edges = new Map(sources.map((file) => [file, findImports(file, readFileSync(file, "utf8"))]));
const imports = [...edges.values()].flat();
/** The files that every command starts with. */
const startFiles = [
  ...["src/main.ts", "src/cli/program.ts", "src/cli/host/commands.ts"],
  ...["arbor", "docker-credential-arbor", "host-commands"].map((name) => `src/cli/package/${name}.ts`),
];

test("rooms import only what their row of the table allows", () => {
  assert.ok(imports.length > 200, "the imports were not found");
  const homeless = sources.filter((file) => roomOf(file) === undefined && file !== "src/main.ts");
  assert.deepEqual(homeless, []);
  assert.deepEqual(findViolations(imports), []);
});

test("an import that a room may not have is found", () => {
  const planted: readonly (readonly [file: string, target: string, typesOnly: boolean])[] = [
    ["src/transport/rest/gateway.ts", "transport/rpc", true],
    ["src/transport/rest/gateway.ts", "iam/groups/group", false],
    ["src/iam/groups/group.ts", "registry/repos/repo", true],
    ["src/iam/groups/group.ts", "store/transaction", false],
    ["src/codec/fields.ts", "pipeline/call", true],
    ["src/client/index.ts", "store/transaction", true],
    ["src/store/store.ts", "#gen/google/rpc/status_pb.js", true],
    ["src/kernel/ids.ts", "config/config", true],
    ["src/cli/remote/iam/commands.ts", "iam/groups/group", true],
  ];
  for (const [file, target, typesOnly] of planted) {
    assert.equal(
      findViolations([{ file, target, typesOnly, dynamic: false }]).length,
      1,
      `${file} may import ${target}`,
    );
  }
});

test("every form of an import is found", () => {
  const value = [
    'import { openSqlite } from "../store/sqlite/open.js";',
    'import { type Options, openSqlite } from "../store/sqlite/open.js";',
    'import "../store/sqlite/open.js";',
    'export { openSqlite } from "../store/sqlite/open.js";',
    'export * from "../store/sqlite/open.js";',
    'const { openSqlite } = await import("../store/sqlite/open.js");',
    'const load = () => import(\n  "../store/sqlite/open.js",\n);',
  ];
  const types = [
    'import type { Options } from "../store/sqlite/open.js";',
    'export type * from "../store/sqlite/open.js";',
    'type Module = typeof import("../store/sqlite/open.js");',
  ];
  const file = "src/codec/fields.ts";
  for (const text of [...value, ...types]) {
    const found = findImports(file, text);
    assert.deepEqual(
      found.map(({ target, typesOnly }) => ({ target, typesOnly })),
      [{ target: "store/sqlite/open", typesOnly: types.includes(text) }],
      text,
    );
    assert.equal(findViolations(found).length, 1, text);
    assert.equal(found[0]?.dynamic, text.includes("import("), text);
  }
});

test("every dynamic import names its module, so that it can be found", () => {
  const unnamed = sources.filter((file) => /\bimport\((?!\s*")/.test(readFileSync(file, "utf8")));
  assert.deepEqual(unnamed, []);
});

test("the table allows nothing that no file imports", () => {
  const unused = Object.entries(rules).flatMap(([room, allowed]) =>
    allowed
      .filter((rule) => !imports.some((one) => roomOf(one.file) === room && permits(rule, one)))
      .map((rule) => `${room}: ${rule}`),
  );
  assert.deepEqual(unused, []);
});

test("nobody imports the composition root but the commands", () => {
  const broken = imports.filter(({ file, target }) => {
    return /^(?:app\/|main$)/.test(target) && !["app", "cli/host"].includes(roomOf(file) ?? "");
  });
  assert.deepEqual(broken, []);
});

test("what every command starts with loads the service only when a command is called", () => {
  assert.deepEqual(findStartFiles(edges).filter(isOfService), []);

  const planted = new Map(edges);
  const file = "src/cli/errors.ts";
  const text = 'import { openStore } from "../app/installation.js";';
  planted.set(file, [...(edges.get(file) ?? []), ...findImports(file, text)]);
  assert.ok(findStartFiles(planted).filter(isOfService).includes("src/app/installation.ts"));
});

test("no modules import each other in a circle, neither for types nor dynamically", () => {
  assert.deepEqual(findCycle(edges), undefined);

  for (const text of ['import type { A } from "./sqlite.js";', 'const load = () => import("./sqlite.js");']) {
    const planted = new Map([
      ["src/store/pg.ts", findImports("src/store/pg.ts", text)],
      ["src/store/sqlite.ts", findImports("src/store/sqlite.ts", 'import { b } from "./pg.js";')],
    ]);
    assert.deepEqual(findCycle(planted), ["src/store/pg.ts", "src/store/sqlite.ts", "src/store/pg.ts"], text);
  }
});

/** Tests that need other programs or an idle machine, and those that start processes. */
const SEPARATE =
  /^test\/(?:pg|pack|browser|python|registry-e2e|promtool|proxies|packages|hostile|faults|failover|soak|e2e|app)\//;

// A limit of wall-clock time fails on a machine with more to do than processors: test/support/stopwatch.ts measures
// processor time, and time without waiting for a processor. Waits end by themselves (test/support/wait-until.ts). Those that
// need an idle machine print times, or run alone.
test("no test of one process has a limit of wall-clock time", () => {
  const limits = [
    /assert\.ok\([^;]*?\b(?:performance|Date)\.now\(\) - \w+ <[^=]/,
    /\b(?:it|test)\([^;]*?, \{ timeout: \d/,
  ];
  const isLimited = (text: string) => limits.some((limit) => limit.test(text));
  const files = filesIn("test").filter(
    (file) => /\.test\.ts$/.test(file) && !SEPARATE.test(file) && file !== "test/architecture.test.ts",
  );
  assert.ok(files.length > 200, `${files.length} files`);
  assert.deepEqual(
    files.filter((file) => isLimited(readFileSync(file, "utf8"))),
    [],
  );
  for (const planted of [
    "assert.ok(performance.now() - start < 2_000);",
    'it("ends", { timeout: 60_000 }, () => {});',
  ]) {
    assert.ok(isLimited(planted), planted);
  }
});

// Native code may still be reading a session from inside one of its events.
test("HTTP/2 sessions and streams are ended by one file alone", () => {
  const ends = /\b(?:session|stream)\w*\.(?:destroy|close|goaway)\(/;
  const found = sources.filter((file) => /^src\/transport\//.test(file) && ends.test(readFileSync(file, "utf8")));
  assert.deepEqual(found, ["src/transport/http/http2-end.ts"]);
});

// Node keeps a signal made of several for as long as it has a listener, also after it fired.
test("listeners of abort signals go with the event", () => {
  const listening = sources.flatMap((file) => {
    const calls = readFileSync(file, "utf8").match(/addEventListener\(\s*"abort"[^;]*;/g) ?? [];
    return calls.map((call) => `${file}: ${call}`);
  });
  assert.ok(listening.length > 5, "the listeners were not found");
  const found = listening.filter((call) => !call.endsWith(", { once: true });"));
  assert.deepEqual(found, []);
});

// A test that waits for a process without a limit can wait for ever.
test("tests start processes by the one file that limits them", () => {
  // What no test of `npm test` loads.
  const others =
    /^test\/(?:pg|pack|browser|python|registry-e2e|promtool|proxies|packages|hostile|faults|failover)\/|campaign\.ts$|^test\/e2e\/power-cut\.ts$/;
  const found = filesIn("test").filter((file) => {
    const edges = findImports(file, readFileSync(file, "utf8"));
    return !others.test(file) && edges.some(({ target, typesOnly }) => target === "node:child_process" && !typesOnly);
  });
  assert.deepEqual(found, ["test/support/child-process.ts", "test/support/other-node.ts", "test/support/packed.ts"]);
});

// Those that start processes are left out of `npm test`, so what starts the service in the process of a test must import none.
test("tests of the service in one process are part of npm test", async () => {
  const { startsProcesses } = (await import(pathToFileURL(join(PROJECT, "scripts/test-files.mjs")).href)) as {
    startsProcesses: (path: string) => boolean;
  };
  assert.equal(startsProcesses("test/support/harness.ts"), false);
  assert.equal(startsProcesses("test/iam/roles.test.ts"), false);
  assert.equal(startsProcesses("test/e2e/kill9.test.ts"), true);
});

function filesIn(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return entry.name.endsWith(".ts") ? [path] : [];
  });
}

function findImports(file: string, text: string): Import[] {
  const resolve = (from: string) =>
    from.startsWith(".")
      ? normalize(join(dirname(file), from))
          .replace(/^src\//, "")
          .replace(/\.js$/, "")
      : from;
  const statements = text.matchAll(/^(?:import|export) (type )?(?:[^;]*? from )?"([^"]+)";/gms);
  const found = [...statements].map(([statement, type, from = ""]) => {
    const named = /\{([^}]*)\}/s.exec(statement)?.[1];
    const everyNameIsType = named?.split(",").every((name) => name.trim() === "" || name.trim().startsWith("type "));
    const typesOnly = type !== undefined || everyNameIsType === true;
    return { file, target: resolve(from), typesOnly, dynamic: false };
  });
  const expressions = text.matchAll(/\b(typeof )?import\(\s*"([^"]+)",?\s*\)/g);
  const more = [...expressions].map(([, type, from = ""]) => {
    return { file, target: resolve(from), typesOnly: type !== undefined, dynamic: true };
  });
  return [...found, ...more];
}

function findViolations(some: readonly Import[]): Import[] {
  return some.filter((one) => {
    const room = roomOf(one.file) ?? "";
    const allowed = rules[room];
    if (allowed === undefined || roomOf(`src/${one.target}`) === room) return false;
    return !allowed.some((rule) => permits(rule, one));
  });
}

function permits(rule: string, { target, typesOnly }: Import): boolean {
  const types = rule.startsWith("types:");
  return begins(target, types ? rule.slice(6) : rule) && (typesOnly || !types);
}

function begins(target: string, rule: string): boolean {
  return target === rule || target.startsWith(rule.endsWith(":") ? rule : `${rule}/`);
}

function roomOf(file: string): string | undefined {
  return rooms.find((room) => file.startsWith(`src/${room}/`));
}

type Edges = ReadonlyMap<string, readonly Import[]>;

function findStartFiles(edges: Edges): string[] {
  const loaded = new Set(startFiles);
  for (const file of loaded) {
    for (const { target, typesOnly, dynamic } of edges.get(file) ?? []) {
      if (!typesOnly && !dynamic && edges.has(`src/${target}.ts`)) loaded.add(`src/${target}.ts`);
    }
  }
  return [...loaded];
}

function isOfService(file: string): boolean {
  return /^src\/(?:app|store|cli\/host)\//.test(file) && !startFiles.includes(file);
}

// The first circle, from a file back to itself. A module may name its own type.
function findCycle(edges: Edges): string[] | undefined {
  const done = new Set<string>();
  const walk = (file: string, path: readonly string[]): string[] | undefined => {
    if (done.has(file)) return undefined;
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    for (const { target, typesOnly } of edges.get(file) ?? []) {
      const next = `src/${target}.ts`;
      if (!edges.has(next) || (next === file && typesOnly)) continue;
      const cycle = walk(next, [...path, file]);
      if (cycle) return cycle;
    }
    done.add(file);
    return undefined;
  };
  for (const file of edges.keys()) {
    const cycle = walk(file, []);
    if (cycle) return cycle;
  }
  return undefined;
}
