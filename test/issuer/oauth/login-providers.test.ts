import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readLoginProviders } from "../../../src/kernel/login-providers.js";
import { tempDir } from "../../support/temp-dir.js";

const directory = tempDir();
const secretFile = fileOf("the secret\n", 0o600);
const right = { name: "google-oauth2", title: "Google", issuer: "https://accounts.google.com", clientId: "id" };

function fileOf(text: string, mode = 0o644): string {
  const file = join(directory, String(Math.random()));
  writeFileSync(file, text, { mode });
  chmodSync(file, mode);
  return file;
}

function read(list: unknown) {
  return readLoginProviders(fileOf(JSON.stringify(list)));
}

test("a list is read, with its secret and the usual scopes", () => {
  assert.deepEqual(read([{ ...right, clientSecretFile: secretFile }]), [
    { ...right, clientSecret: "the secret", scopes: ["openid", "email", "profile"] },
  ]);
});

test("a public client has no secret, and scopes can be others", () => {
  const [provider] = read([{ ...right, scopes: ["openid", "groups"] }]);
  assert.equal(provider?.clientSecret, undefined);
  assert.deepEqual(provider?.scopes, ["openid", "groups"]);
});

test("no file is an empty list", () => {
  assert.deepEqual(readLoginProviders(undefined), []);
  assert.deepEqual(read([]), []);
});

const broken: readonly (readonly [string, unknown, RegExp])[] = [
  ["no list", {}, /must be a JSON list/],
  ["an entry that is no object", ["google"], /provider 1 must be an object/],
  ["a setting there is not", [{ ...right, clientSecret: "x" }], /provider 1: clientSecret is not a setting/],
  ["no name", [{ ...right, name: undefined }], /provider 1: name must be/],
  ["a name with capitals", [{ ...right, name: "Google" }], /provider 1: name must be/],
  ["a name like a uid", [{ ...right, name: "a/b" }], /provider 1: name must be/],
  ["an empty title", [{ ...right, title: "" }], /provider 1: title must be/],
  ["a title with a line break", [{ ...right, title: "a\nb" }], /provider 1: title must be/],
  ["an issuer that is no URL", [{ ...right, issuer: "google" }], /provider 1: issuer must be/],
  ["an issuer with a query", [{ ...right, issuer: "https://a.example/?x" }], /provider 1: issuer must be/],
  ["an issuer in another spelling", [{ ...right, issuer: "https://A.example" }], /provider 1: issuer must be/],
  [
    "an issuer of several tenants",
    [{ ...right, issuer: "https://login.microsoftonline.com/common/v2.0" }],
    /provider 1: issuer must name one tenant/,
  ],
  ["an issuer with a user", [{ ...right, issuer: "https://u@a.example" }], /provider 1: issuer must be/],
  ["a client id that is a number", [{ ...right, clientId: 5 }], /provider 1: clientId must be/],
  ["scopes without openid", [{ ...right, scopes: ["email"] }], /provider 1: scopes must be/],
  ["scopes in one text", [{ ...right, scopes: "openid email" }], /provider 1: scopes must be/],
  ["a relative path", [{ ...right, clientSecretFile: "secret" }], /clientSecretFile: must be an absolute path/],
  [
    "a file that is not there",
    [{ ...right, clientSecretFile: "/nowhere" }],
    /clientSecretFile: cannot read \/nowhere: no such file/,
  ],
  ["an empty file", [{ ...right, clientSecretFile: fileOf("\n", 0o600) }], /must hold one line/],
  ["a file of two lines", [{ ...right, clientSecretFile: fileOf("a\nb\n", 0o600) }], /must hold one line/],
  ["a file others can read", [{ ...right, clientSecretFile: fileOf("x", 0o644) }], /mode 0600/],
  ["a directory", [{ ...right, clientSecretFile: tempDir() }], /clientSecretFile/],
  ["two of one name", [right, { ...right, issuer: "https://b.example" }], /two providers have the name google-oauth2/],
  ["two of one issuer", [right, { ...right, name: "b" }], /two providers have the issuer https:\/\/accounts/],
];

for (const [name, list, problem] of broken) {
  test(`${name} is rejected`, () => {
    assert.throws(() => read(list), problem);
  });
}

test("everything that is wrong is named at once", () => {
  assert.throws(
    () =>
      read([
        { ...right, name: "" },
        { ...right, clientSecretFile: "x", title: 1 },
      ]),
    ({ message }: Error) => ["1: name", "2: title", "2: clientSecretFile"].every((one) => message.includes(one)),
  );
});

test("a missing file and a file without JSON are rejected", () => {
  assert.throws(
    () => readLoginProviders("/nowhere.json"),
    /^Error: --login-providers: cannot read \/nowhere.json: no such file$/,
  );
  assert.throws(() => readLoginProviders(fileOf("[")), /must hold JSON/);
});

test("no problem shows a secret", () => {
  const file = fileOf("first\nsecond", 0o600);
  assert.throws(
    () => read([{ ...right, clientSecretFile: file }]),
    ({ message }: Error) => !message.includes("first"),
  );
});
