import assert from "node:assert/strict";
import { test } from "node:test";
import { createUserCode, isUserCode } from "../../../src/issuer/oauth/device.js";
import { computeConfirmationCode } from "../../../src/issuer/oauth/headless.js";
import { formatCode } from "../../../src/issuer/oauth/pages.js";
import { normalizeCode, requireLoopback } from "../../../src/issuer/oauth/request.js";
import { setParameters } from "../../../src/issuer/oauth/responses.js";
import { ApiError } from "../../../src/kernel/errors.js";

const right = [
  "http://127.0.0.1:1234/callback",
  "http://127.0.0.1:1",
  "http://localhost:65535/",
  "http://localhost:80/callback",
  "http://[::1]:8080/callback?token=true&error=true",
];

for (const url of right) {
  test(`${url} is a loopback address`, () => {
    assert.equal(requireLoopback(url, "redirect_uri"), url);
  });
}

const wrong: readonly (readonly [string, string])[] = [
  ["another host that begins like one", "http://127.0.0.1.evil"],
  ["the same with a port", "http://127.0.0.1.evil:1/"],
  ["a host that ends like one", "http://evil.localhost:1/"],
  ["no port", "http://localhost/callback"],
  ["an empty port", "http://localhost:/callback"],
  ["port 0", "http://localhost:0/"],
  ["a port out of range", "http://localhost:65536/"],
  ["a port with a leading zero", "http://localhost:01234/"],
  ["a path that parsing changes", "http://localhost:1/../x"],
  ["the same, escaped", "http://localhost:1/%2e%2e/x"],
  ["a backslash", "http://localhost:1\\@evil.example/"],
  ["a backslash in the path", "http://localhost:1/a\\b"],
  ["a user name", "http://localhost:1@evil.example/"],
  ["a user name before the host", "http://me@localhost:1/"],
  ["a user and a password", "http://me:pw@localhost:1/"],
  ["a fragment", "http://localhost:1/#x"],
  ["an empty fragment", "http://localhost:1/#"],
  ["https", "https://localhost:1/"],
  ["a custom scheme", "com.example.app:/callback"],
  ["javascript", "javascript:alert(1)//http://localhost:1/"],
  ["another case of the scheme", "HTTP://localhost:1/"],
  ["another case of the host", "http://LOCALHOST:1/"],
  ["another spelling of the address", "http://127.1:1/"],
  ["the address as one number", "http://2130706433:1/"],
  ["another loopback address", "http://127.0.0.2:1/"],
  ["a mapped address", "http://[::ffff:127.0.0.1]:1/"],
  ["every address", "http://0.0.0.0:1/"],
  ["no slashes", "http:localhost:1/"],
  ["a space in front", " http://localhost:1/"],
  ["a line break", "http://localhost:1/\n"],
  ["a tab in the host", "http://local\thost:1/"],
  ["letters beyond ASCII", "http://localhost:1/ü"],
  ["digits that look alike", "http://127.0.0.１:1/"],
  ["one that is too long", `http://localhost:1/${"a".repeat(1024)}`],
  ["nothing", ""],
];

for (const [name, url] of wrong) {
  test(`${name} is rejected`, () => {
    assert.throws(
      () => requireLoopback(url, "redirect_uri"),
      (error) => error instanceof ApiError && error.message.startsWith("Invalid argument: redirect_uri: "),
    );
  });
}

test("an absent value is rejected", () => {
  assert.throws(() => requireLoopback(undefined, "redirect"), /Invalid argument: redirect: /);
});

test("parameters replace those with the same name, and names can be removed", () => {
  const url = "http://localhost:1/callback?token=true&error=true&keep=a%20b";
  const result = setParameters(url, { token: "t&t", refresh_token: undefined }, ["error"]);
  assert.deepEqual(
    [...new URL(result).searchParams],
    [
      ["token", "t&t"],
      ["keep", "a b"],
    ],
  );
});

test("codes of devices are eight of twenty consonants, and not the same", () => {
  const codes = Array.from({ length: 2_000 }, createUserCode);
  for (const code of codes) assert.match(code, /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/);
  assert.equal(new Set(codes).size, codes.length);
  assert.equal(new Set(codes.join("")).size, 20);
  assert.ok(codes.every(isUserCode));
});

// SHA-256 of 32 zero bytes is 66687aadf862bd77…, whose first five bytes are MZUHVLPY in base32.
test("the code of a terminal is the beginning of the hash of its key, in base32", () => {
  assert.equal(computeConfirmationCode(Buffer.alloc(32)), "MZUHVLPY");
  assert.equal(formatCode("MZUHVLPY"), "MZUH-VLPY");
});

const typed: readonly (readonly [string, string])[] = [
  ["bcdf-ghjk", "BCDFGHJK"],
  [" BCDF GHJK ", "BCDFGHJK"],
  ["b c d f.g_h-j k", "BCDFGHJK"],
  ["BCDFGHJK", "BCDFGHJK"],
  ["", ""],
];

for (const [text, code] of typed) {
  test(`"${text}" is read as "${code}"`, () => {
    assert.equal(normalizeCode(text), code);
  });
}

for (const code of ["", "BCDFGHJ", "BCDFGHJKL", "ABCDFGHJ", "BCDFGHJ1", "bcdfghjk"]) {
  test(`"${code}" is no code of a device`, () => {
    assert.equal(isUserCode(code), false);
  });
}
