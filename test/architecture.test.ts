// Holds the tree to docs/architecture.md: who may import whom, no cycles, no
// file above 400 lines, and every public symbol documented.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";

const MAX_LINES = 400;

// What each room may import besides itself: other rooms or files of src, prefixes of `#gen/`, packages.
// `types:` allows a module for its types alone. The longest path that begins a file's path is its room.
const feature = ["kernel", "pipeline", "types:store/port", "#gen", "@bufbuild/protobuf", "node:crypto"];
const protocol = [
  "transport/http",
  "codec",
  "kernel",
  "pipeline",
  "telemetry",
  "#gen/google",
  "#gen/grpc",
  "#gen/health",
  "@bufbuild/protobuf",
  "@connectrpc",
  "node:",
];
const rules: Record<string, readonly string[]> = {
  kernel: ["#gen/google/rpc", "@connectrpc/connect", "re2js", "node:crypto", "node:fs", "node:module", "node:net"],
  config: ["kernel", "leven", "node:"],
  jobs: ["kernel", "types:store/port"],
  outbound: ["kernel", "node:"],
  telemetry: ["kernel", "pino", "prom-client", "@opentelemetry", "node:"],
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
    "telemetry",
    "types:store/port",
    "#gen",
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "lru-cache",
    "node:crypto",
  ],
  iam: feature,
  registry: [...feature, "iam/groups", "issuer/keys", "issuer/sts", "jobs", "outbound", "@connectrpc/connect", "node:"],
  vulnerabilities: [...feature, "iam/groups", "jobs"],
  events: [...feature, "iam/groups", "iam/identities", "jobs"],
  issuer: [
    ...feature,
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
  audit: ["kernel", "jobs", "pipeline", "types:store/port", "#gen", "@bufbuild/protobuf", "jose", "node:crypto"],
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
  "transport/rest": protocol,
  "transport/rpc": protocol,
  "transport/openapi": protocol,
  transport: ["transport/rest", "transport/rpc", "transport/openapi", ...protocol],
  // With a token, over the network: what loads no store and no native module.
  "cli/remote": [
    "audit/chain",
    "audit/remembered-head",
    "audit/verify",
    "cli/errors",
    "cli/output",
    "cli/shared-file",
    "client",
    "codec",
    "kernel",
    "config",
    "#gen",
    "@bufbuild/protobuf",
    "@connectrpc",
    "commander",
    "yaml",
    "node:",
  ],
  client: ["kernel", "config", "#gen", "@bufbuild/protobuf", "@connectrpc", "node:"],
};
const rooms = [...Object.keys(rules), "app", "cli/host", "cli"].sort((one, other) => other.length - one.length);

interface Import {
  readonly file: string;
  readonly target: string;
  readonly typesOnly: boolean;
}

const sources = filesIn("src");
const imports = sources.flatMap(importsOf);

test("rooms import only what their row of the table allows", () => {
  assert.ok(imports.length > 200, "the imports were not found");
  const homeless = sources.filter((file) => roomOf(file) === undefined && file !== "src/main.ts");
  assert.deepEqual(homeless, []);
  assert.deepEqual(brokenIn(imports), []);
});

test("an import that a room may not have is found", () => {
  const planted: readonly (readonly [file: string, target: string, typesOnly: boolean])[] = [
    ["src/transport/rest/gateway.ts", "transport/rpc/grpc", true],
    ["src/transport/rest/gateway.ts", "iam/groups/group", false],
    ["src/iam/groups/group.ts", "registry/repos/repo", true],
    ["src/iam/groups/group.ts", "store/port", false],
    ["src/codec/fields.ts", "pipeline/call", true],
    ["src/client/index.ts", "store/port", true],
    ["src/store/port.ts", "#gen/google/rpc/status_pb.js", true],
    ["src/kernel/ids.ts", "config/config", true],
    ["src/cli/remote/iam/commands.ts", "iam/groups/group", true],
  ];
  for (const [file, target, typesOnly] of planted) {
    assert.equal(brokenIn([{ file, target, typesOnly }]).length, 1, `${file} may import ${target}`);
  }
});

test("nobody imports the composition root but the commands, and those only when called", () => {
  const broken = imports.filter(({ file, target }) => {
    return /^(?:app\/|main$)/.test(target) && !["app", "cli", "cli/host"].includes(roomOf(file) ?? "");
  });
  assert.deepEqual(broken, []);
});

test("no modules import each other in a circle, not for types either", () => {
  const edges = new Map(sources.map((file) => [file, importsOf(file)]));
  const state = new Map<string, "open" | "done">();
  const walk = (file: string, path: readonly string[]): void => {
    if (state.get(file) === "done") return;
    assert.notEqual(state.get(file), "open", [...path, file].join(" -> "));
    state.set(file, "open");
    for (const { target } of edges.get(file) ?? [])
      if (edges.has(`src/${target}.ts`)) walk(`src/${target}.ts`, [...path, file]);
    state.set(file, "done");
  };
  for (const file of sources) walk(file, []);
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

test(`no file has more than ${MAX_LINES} lines`, () => {
  const long = [...sources, ...filesIn("test"), ...filesIn("bench")]
    .map((file) => ({ file, lines: readFileSync(file, "utf8").split("\n").length - 1 }))
    .filter(({ lines }) => lines > MAX_LINES);
  assert.deepEqual(long, []);
});

test("every exported symbol has a doc comment", () => {
  const bare = sources.flatMap((file) => {
    const lines = readFileSync(file, "utf8").split("\n");
    return lines.flatMap((line, i) => {
      const exported = /^export (?:async )?(?:function|class|interface|type|const) (\w+)/.exec(line);
      // Columns modules are a list of column types; the file's head speaks for it.
      if (!exported || file.includes("/columns-") || lines[i - 1]?.endsWith("*/")) return [];
      // What a function is given needs no words of its own where its fields have them.
      if (/(?:Deps|Options)$/.test(exported[1] ?? "")) return [];
      return [`${file}: ${exported[1]}`];
    });
  });
  assert.deepEqual(bare, []);
});

function filesIn(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return entry.name.endsWith(".ts") ? [path] : [];
  });
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, "utf8");
  return [...text.matchAll(/^(?:import|export) (type )?(?:[^;]*? from )?"([^"]+)";/gms)].map(
    ([statement, type, from = ""]) => {
      const named = /\{([^}]*)\}/s.exec(statement)?.[1];
      const everyNameIsType = named?.split(",").every((name) => name.trim() === "" || name.trim().startsWith("type "));
      const target = from.startsWith(".")
        ? normalize(join(dirname(file), from))
            .replace(/^src\//, "")
            .replace(/\.js$/, "")
        : from;
      return { file, target, typesOnly: type !== undefined || everyNameIsType === true };
    },
  );
}

function brokenIn(some: readonly Import[]): Import[] {
  return some.filter(({ file, target, typesOnly }) => {
    const room = roomOf(file) ?? "";
    const allowed = rules[room];
    if (allowed === undefined || roomOf(`src/${target}`) === room) return false;
    return !allowed.some((rule) => {
      const types = rule.startsWith("types:");
      return begins(target, types ? rule.slice(6) : rule) && (typesOnly || !types);
    });
  });
}

function begins(target: string, rule: string): boolean {
  return target === rule || target.startsWith(rule.endsWith(":") ? rule : `${rule}/`);
}

function roomOf(file: string): string | undefined {
  return rooms.find((room) => file.startsWith(`src/${room}/`));
}
