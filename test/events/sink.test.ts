// Where events may be sent to.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { breakRule } from "../../src/kernel/errors.js";
import { isSink } from "../../src/kernel/field-rules.js";

const RULE = breakRule("sink", "must be an https URL of at most 2048 characters without user or fragment");
const long = (length: number) => `https://a.example/${"x".repeat(length - "https://a.example/".length)}`;

const accepted: readonly string[] = [
  "https://localhost/callback",
  "https://a.example",
  "https://a.example/",
  "https://a.example?key=1&other=a/b",
  "https://A.Example/Path",
  "HTTPS://a.example:8443/x",
  "https://a.example:443/x",
  "https://xn--bcher-kva.example/%20",
  "https://192.0.2.1/hook",
  "https://[2001:db8::1]:8443/hook",
  "https://a.example/user@host:1//x;y=(z)",
  long(2_048),
];

const refused: Readonly<Record<string, string>> = {
  cleartext: "http://a.example/",
  "another scheme": "ftp://a.example/",
  "no scheme": "a.example/hook",
  "no host": "https:///hook",
  "one slash": "https:/a.example/hook",
  "a user": "https://user@a.example/",
  "a user and a password": "https://user:secret@a.example/",
  "an empty user": "https://@a.example/",
  "a host that looks like a user": "https://a.example\\@b.example/",
  "a fragment": "https://a.example/#here",
  "an empty fragment": "https://a.example/#",
  "a line break": "https://a.example/\nx",
  "a tab in the host": "https://a.exa\tmple/",
  "a blank before it": " https://a.example/",
  "a blank within": "https://a.example/a b",
  "a control character": "https://a.example/\u0000",
  "a letter of another script": "https://bücher.example/",
  "a path beyond ASCII": "https://a.example/bücher",
  "an escaped host": "https://%61.example/",
  "a hexadecimal address": "https://0x7f.0.0.1/",
  "an address as one number": "https://2130706433/",
  "an octal address": "https://0177.0.0.1/",
  "an address with zeros": "https://[2001:db8:0:0::1]/",
  "a port that does not exist": "https://a.example:65536/",
  "an empty port": "https://a.example:/",
  "a character too many": long(2_049),
};

describe("a sink", () => {
  for (const sink of accepted) {
    it(`may be ${sink.slice(0, 60)}`, () => assert.equal(isSink(sink, "sink"), undefined));
  }
  for (const [what, sink] of Object.entries(refused)) {
    it(`must not have or be ${what}`, () => assert.deepEqual(isSink(sink, "sink"), RULE));
  }
  it("is required", () => assert.deepEqual(isSink("", "sink"), breakRule("sink", "is required")));
});
