// Holds the tree to docs/architecture.md: who may import whom, no cycles, no
// file above 400 lines, and every public symbol documented.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { test } from "node:test";

const MAX_LINES = 400;

// What each folder may import: folders of src, prefixes of `#gen/`, packages.
// `types:` allows a module for its types alone.
const rules: Record<string, readonly string[]> = {
  kernel: ["#gen/google/rpc", "@connectrpc/connect", "node:crypto", "node:net"],
  rpc: ["kernel", "auth", "types:store/port", "#gen", "@bufbuild/protobuf", "@connectrpc/connect"],
  // What of rpc, auth and resource is to come here.
  pipeline: ["kernel", "types:store/port"],
  resource: ["kernel", "types:store/port", "types:#gen", "@bufbuild/protobuf"],
  iam: [
    "kernel",
    "resource",
    "rpc",
    "types:pipeline/quotas",
    "auth",
    "types:store/port",
    "#gen",
    "@bufbuild/protobuf",
    "re2js",
    "node:crypto",
  ],
  registry: [
    "kernel",
    "resource",
    "rpc",
    "auth",
    "types:issuer",
    "issuer/exchange",
    "outbound",
    "types:store/port",
    "#gen",
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "node:",
  ],
  vulnerabilities: [
    "kernel",
    "resource",
    "rpc",
    "auth",
    "types:store/port",
    "#gen",
    "@bufbuild/protobuf",
    "node:crypto",
  ],
  events: [
    "kernel",
    "resource",
    "rpc",
    // The group that something is created in, and what people tell of themselves; no handlers.
    "iam/identities/metadata",
    "iam/kinds",
    "iam/parent-group",
    "types:store/port",
    "#gen",
    "@bufbuild/protobuf",
  ],
  auth: ["kernel", "types:store/port", "#gen", "node:crypto", "lru-cache", "@bufbuild/protobuf", "@connectrpc/connect"],
  audit: ["kernel", "types:store/port", "jose", "node:crypto"],
  issuer: [
    "kernel",
    "auth",
    "rpc",
    // What identities, providers, roles and people are; never the handlers of their services.
    "iam/identities/relationship",
    "iam/identity-providers/identity-provider",
    "iam/groups/group-v1-view",
    "iam/kinds",
    "iam/people",
    "types:pipeline/quotas",
    "iam/roles/capability-names",
    "iam/roles/role-v1-view",
    "outbound",
    "types:store/port",
    "#gen",
    "@bufbuild/protobuf",
    "@connectrpc/connect",
    "jose",
    "lru-cache",
    "openid-client",
    "re2js",
    "node:",
  ],
  store: ["kernel", "drizzle-orm", "types:better-sqlite3", "pg", "node:fs", "node:module", "node:path", "node:url"],
  gateway: ["kernel", "rpc", "transport", "#gen/google", "@bufbuild/protobuf", "@connectrpc/connect", "node:"],
  server: [
    "kernel",
    "rpc",
    "gateway",
    "transport",
    "telemetry",
    "#gen/google/rpc",
    "#gen/grpc",
    "#gen/health",
    "@bufbuild/protobuf",
    "@connectrpc",
    "node:",
  ],
  // What `server` and `gateway` have in common moves here: sockets, bodies, budgets, limits.
  transport: ["kernel", "rpc", "telemetry", "#gen/google/rpc", "@bufbuild/protobuf", "@connectrpc", "node:"],
  // Every request that leaves.
  outbound: ["kernel", "node:"],
  telemetry: ["pino", "node:"],
  client: ["#gen", "@bufbuild/protobuf", "@connectrpc", "node:"],
};

interface Import {
  readonly file: string;
  readonly target: string;
  readonly typesOnly: boolean;
}

const sources = filesIn("src");
const imports = sources.flatMap(importsOf);

test("folders import only what their row of the table allows", () => {
  assert.ok(imports.length > 200, "the imports were not found");
  const broken = imports.filter(({ file, target, typesOnly }) => {
    const folder = folderOf(file);
    const allowed = rules[folder];
    if (allowed === undefined || folderOf(`src/${target}`) === folder) return false;
    return !allowed.some((rule) => {
      const types = rule.startsWith("types:");
      return target.startsWith(types ? rule.slice(6) : rule) && (typesOnly || !types);
    });
  });
  assert.deepEqual(broken, []);
});

test("nobody imports the composition root but the commands, and those only when called", () => {
  const roots = ["app", "installation", "main"];
  const broken = imports.filter(({ file, target }) => {
    return roots.includes(target) && folderOf(file) !== "cli" && !["src/app.ts", "src/installation.ts"].includes(file);
  });
  assert.deepEqual(broken, []);
});

test("no modules import each other in a circle", () => {
  const edges = new Map(sources.map((file) => [file, importsOf(file).filter((i) => !i.typesOnly)]));
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
  const found = sources.filter(
    (file) => /^src\/(?:server|gateway|transport)\//.test(file) && ends.test(readFileSync(file, "utf8")),
  );
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

function folderOf(file: string): string {
  return file.split("/").length > 2 ? (file.split("/")[1] ?? "") : "";
}
