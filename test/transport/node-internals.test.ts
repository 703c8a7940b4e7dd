// No private parts of Node: what a release of Node may change without notice. The list is of what was used once, or is tempting.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { PROJECT } from "../support/project.js";

/** What is forbidden, with a line that has it. */
const forbidden: Readonly<Record<string, readonly [pattern: RegExp, line: string]>> = {
  "the callbacks of a parser": [/\bonIncoming\b|\.parser\b|\bHTTPParser\b/, "socket.parser.onIncoming = read;"],
  "a name with an underscore": [/\??\._[A-Za-z]/, "socket._handle?.writeQueueSize"],
  "a declared name with an underscore": [/^\s+(readonly )?_\w+\??: /m, "  readonly _httpMessage?: unknown;"],
  "a quoted name with an underscore": [
    /\[["'](_(handle|http|header|keep|server|events|write|read)\w*)["']\]/,
    'res["_header"]',
  ],
  "the state of a response": [/\.(finished|outputData|outputSize)\b/, "res.finished = true;"],
  "the state of a stream": [/\b_(readable|writable)State\b/, "socket._writableState"],
  "a state that Node computes": [
    /(define\w*|assign)\([^;]*\bwritable(Finished|Ended)\b|\.writable(Finished|Ended) = /,
    'Object.defineProperty(res, "writableFinished", { value: true });',
  ],
  "symbols of Node": [/\bgetOwnPropertySymbols\b|\bReflect\.ownKeys\b/, "Object.getOwnPropertySymbols(res)"],
  "the compatibility layer of HTTP/2": [/\bHttp2Server(Request|Response)\b/, "new Http2ServerRequest(stream, headers)"],
  "bindings of Node": [/\bprocess\.binding\b|\binternalBinding\b|node:internal/, 'process.binding("http_parser")'],
  "flags at run time": [/\bsetFlagsFromString\b/, 'setFlagsFromString("--max-semi-space-size=1")'],
};

/** What is used in spite of that, in which file, how often, and why. */
const exceptions: Readonly<
  Record<string, { readonly pattern: RegExp; readonly files: Readonly<Record<string, number>> }>
> = {
  // Without the event Node does not check headersTimeout and requestTimeout: the server itself never listens.
  "the event of a server that listens": {
    pattern: /\.emit\("listening"\)/g,
    files: { "src/transport/http/http1.ts": 1 },
  },
  // Node closes no response that waits behind another one when their connection is cut.
  "the end of a response": {
    pattern: /\.emit\("(close|finish|end|error)"/g,
    files: { "src/transport/http/http1.ts": 1 },
  },
};

const sources = readdirSync(join(PROJECT, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => ({ path: join("src", name), text: readFileSync(join(PROJECT, "src", name), "utf8") }));

test("the source is read", () => {
  assert.ok(sources.some(({ path }) => path === join("src", "transport", "http", "http1.ts")));
});

for (const [name, [pattern, line]] of Object.entries(forbidden)) {
  test(`nothing uses ${name}`, () => {
    assert.match(line, pattern, "the pattern finds nothing");
    assert.deepEqual(
      sources.filter(({ text }) => pattern.test(text)).map(({ path }) => path),
      [],
    );
  });
}

for (const [name, { pattern, files }] of Object.entries(exceptions)) {
  test(`only what is known uses ${name}`, () => {
    const found = sources.map(({ path, text }) => [path, [...text.matchAll(pattern)].length] as const);
    assert.deepEqual(Object.fromEntries(found.filter(([, count]) => count > 0)), files);
  });
}
