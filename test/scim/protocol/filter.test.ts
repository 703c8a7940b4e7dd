import assert from "node:assert/strict";
import { test } from "node:test";
import { changedSince, equalityOf } from "../../../src/scim/protocol/conditions.js";
import { parseFilter } from "../../../src/scim/protocol/filter.js";
import { matches } from "../../../src/scim/protocol/match.js";
import { userType } from "../../../src/scim/protocol/schemas.js";
import { assertRejected } from "./reject.js";

const ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
const person = {
  id: "Ab",
  externalId: "Ext",
  meta: { resourceType: "User", lastModified: "2026-03-01T10:00:00.5Z" },
  userName: "BJensen",
  name: { familyName: "O'Malley", givenName: "" },
  title: 'say "hi" ] (',
  active: false,
  emails: [
    { value: "b@example.com", type: "work", primary: true },
    { value: "b@home.example", type: "home" },
  ],
  addresses: [{ locality: "Berlin" }],
  [ENTERPRISE]: { department: "Sales", manager: { value: "M1" } },
};
const isMatch = (filter: string) => matches(parseFilter(filter, userType), person, userType);

const table: readonly (readonly [filter: string, expected: boolean])[] = [
  ['userName eq "bjensen"', true],
  ['USERNAME Eq "BJENSEN"', true],
  ['userName eq "bjense"', false],
  ['userName ne "bjensen"', false],
  ['externalId eq "ext"', false],
  ['externalId eq "Ext"', true],
  ['id eq "ab"', false],
  ['userName co "JENS"', true],
  ['userName sw "bj"', true],
  ['userName ew "sen"', true],
  ['userName gt "bj"', true],
  ['userName lt "bj"', false],
  ['userName ge "BJENSEN"', true],
  ['userName le "BJENSEN"', true],
  ['name.familyName co "o\'malley"', true],
  ['title eq "say \\"hi\\" ] ("', true],
  ['title eq "\\u0073ay \\"hi\\" ] ("', true],
  ["active eq false", true],
  ["active eq False", true],
  ['active eq "False"', true],
  ["active ne true", true],
  ["active pr", true],
  // An attribute without value equals null alone (RFC 7643, section 2.5).
  ["nickName pr", false],
  ["nickName eq null", true],
  ["nickName ne null", false],
  ['nickName eq ""', false],
  ['nickName ne "x"', true],
  ['nickName lt "x"', false],
  ["name.givenName pr", false],
  ["name pr", true],
  ["userName ne null", true],
  // Of several values one is enough.
  ['emails eq "B@EXAMPLE.COM"', true],
  ['emails co "example.com"', true],
  ['emails.type eq "home"', true],
  ['emails.type ne "home"', true],
  ['emails[type eq "work" and value co "@example.com"]', true],
  ['emails[type eq "home" and value co "@example.com"]', false],
  ['emails.type eq "home" and emails.value co "@example.com"', true],
  ["emails[not (primary pr)]", true],
  ["emails[primary eq true]", true],
  ['emails [ type eq "work" ]', true],
  ["addresses pr", true],
  ["addresses[type eq null]", true],
  ["roles[type eq null]", false],
  ["roles.type eq null", true],
  ["roles pr", false],
  ['name[familyName sw "o"]', true],
  // Times are compared as times.
  ['meta.lastModified eq "2026-03-01T11:00:00.500+01:00"', true],
  ['meta.lastModified gt "2026-03-01T10:00:00Z"', true],
  ['meta.lastModified ge "2026-03-01T10:00:00.5"', true],
  ['meta.lastModified lt "2026-03-01T10:00:00.5Z"', false],
  // Precedence: not, and, or.
  ['nickName pr and nickName pr or userName eq "bjensen"', true],
  ['userName eq "bjensen" or nickName pr and nickName pr', true],
  ['(userName eq "bjensen" or nickName pr) and nickName pr', false],
  ["not (nickName pr) and userName pr", true],
  ["NOT(nickName pr AND userName pr)", true],
  // Names with a URN.
  ['urn:ietf:params:scim:schemas:core:2.0:User:userName eq "bjensen"', true],
  ['URN:ietf:params:scim:schemas:core:2.0:user:name.familyName sw "o"', true],
  [`${ENTERPRISE}:department eq "sales"`, true],
  [`${ENTERPRISE}:manager.value eq "M1"`, true],
  [`${ENTERPRISE} pr`, true],
  ['manager eq "M1"', true],
  ['schemas eq "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"', true],
  ['schemas eq "urn:x"', false],
];
test("filters match as RFC 7644, section 3.4.2.2, says", () => {
  for (const [filter, expected] of table) assert.equal(isMatch(filter), expected, filter);
});

const wrong = [
  ...[
    "",
    " ",
    "userName",
    "userName eq",
    'eq "x"',
    'userName is "x"',
    'userName eq "x',
    "userName eq x",
    "userName eq 'x'",
  ],
  ...['userName eq "x" and', 'userName eq "x" userName pr', 'userName eq "\\x"', 'userName eq "a\nb"', "(userName pr"],
  ...[
    "userName pr)",
    "()",
    "not userName pr",
    "not",
    "not ()",
    "userName pr or or userName pr",
    "userName pr xor id pr",
  ],
  ...['emails[type eq "work"].value eq "x"', 'emails[type eq "work"] eq "x"', "emails[]", 'emails[type eq "work"'],
  ...['emails[emails[type eq "a"]]', 'emails[userName eq "a"]', 'userName[value eq "a"]', "emails]"],
  ...['nothing eq "x"', 'name.nothing eq "x"', 'userName.value eq "x"', 'emails.value.type eq "x"', '.userName eq "x"'],
  ...['urn:x:userName eq "x"', 'urn:ietf:params:scim:schemas:core:2.0:User: eq "x"', 'userName. eq "x"'],
  // Values and operators that do not fit the attribute.
  ...["userName eq 1", "userName eq true", 'active eq "x"', "active eq 1", "active gt true", 'active co "t"'],
  ...["userName gt null", "userName co null", 'name eq "x"', 'addresses eq "x"', 'x509Certificates gt "x"'],
  ...['meta.lastModified gt "yesterday"', 'meta.lastModified gt "2026-02-30T00:00:00Z"', 'meta.lastModified co "2026"'],
  ...["userName eq [1]", "userName eq {}", "userName eq 01", "userName eq +1", "userName eq NaN"],
];
test("wrong filters are rejected with invalidFilter", () => {
  for (const filter of wrong) assertRejected(() => parseFilter(filter, userType), "invalidFilter", filter);
});

test("what all matches have is found for an index", () => {
  const find = (filter: string, name: string) => equalityOf(parseFilter(filter, userType), name);
  assert.equal(find('USERNAME eq "A"', "userName"), "A");
  assert.equal(find('active eq true and (title pr and userName eq "A")', "userName"), "A");
  for (const filter of [
    'userName eq "A" or title pr',
    'not (userName eq "A")',
    'userName ne "A"',
    "userName eq null",
  ]) {
    assert.equal(find(filter, "userName"), undefined, filter);
  }
  assert.equal(find('emails[value eq "A"]', "userName"), undefined);
  assert.equal(find('id eq "1" and externalId eq "2"', "externalId"), "2");

  const since = (filter: string) => changedSince(parseFilter(filter, userType));
  const timeMs = Date.parse("2026-01-01T00:00:00Z");
  assert.deepEqual(since('meta.lastModified gt "2026-01-01T00:00:00Z"'), { timeMs, inclusive: false });
  assert.deepEqual(since('title pr and meta.lastModified ge "2026-01-01T01:00:00+01:00"'), { timeMs, inclusive: true });
  const both = 'meta.lastModified ge "2026-01-01T00:00:00Z" and meta.lastModified gt "2026-01-01T00:00:00Z"';
  assert.deepEqual(since(both), { timeMs, inclusive: false });
  assert.equal(since('meta.lastModified lt "2026-01-01T00:00:00Z"'), undefined);
  assert.equal(since('meta.created gt "2026-01-01T00:00:00Z"'), undefined);
});
