// Texts and claims that must not match what an identity states, or what the service is called: every comparison is
// byte for byte.

/** Makes another text of one that is right. */
export type Edit = (right: string) => string;

type Edits = Readonly<Record<string, Edit>>;

/** What looks like a text, sorts or folds like it, contains it, or would match it as a pattern. */
export const textEdits: Edits = {
  "another case": (text) => text.toUpperCase(),
  "another case of one letter": (text) => text.replace(/[a-z]/, (letter) => letter.toUpperCase()),
  "one letter less": (text) => text.slice(0, -1),
  "no first letter": (text) => text.slice(1),
  "one letter more": (text) => `${text}x`,
  "a digit more": (text) => `${text}2`,
  "a letter before it": (text) => `x${text}`,
  "a further part": (text) => `${text}:x`,
  "a slash after it": (text) => `${text}/`,
  "a leading blank": (text) => ` ${text}`,
  "a trailing blank": (text) => `${text} `,
  "a trailing line break": (text) => `${text}\n`,
  "itself, twice": (text) => text + text,
  "itself, twice with a comma": (text) => `${text},${text}`,
  "the decomposed form": (text) => text.normalize("NFD"),
  "an accent": (text) => text.replace("a", "a\u0301"),
  "full-width letters": (text) => text.replace(/[a-z]/, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)),
  "a zero-width joiner": (text) => `${text.slice(0, 2)}\u200d${text.slice(2)}`,
  "a right-to-left mark": (text) => `${text}\u200f`,
  "a leading right-to-left mark": (text) => `\u200f${text}`,
  "a Cyrillic look-alike": (text) => text.replace(/[ae]/, (letter) => (letter === "a" ? "\u0430" : "\u0435")),
  "a star": () => "*",
  "a dot and a star": () => ".*",
  "a percent sign": () => "%",
};

/** A text that is stated, and one that must not match it. */
export interface UnequalTexts {
  readonly differs: string;
  readonly stated: string;
  readonly given: string;
}

/** A text that every edit of {@link textEdits} changes. */
export const EDITABLE = "repo:acme/caf\u00e9";

// A stated text is no pattern, whatever it looks like.
const patternLike: Readonly<Record<string, readonly [stated: string, given: string]>> = {
  "a stated star": ["repo:acme/*", "repo:acme/app"],
  "a stated star at its start": ["repo:*", "repo:alpha"],
  "a stated dot and star": ["repo:acme/.*", "repo:acme/app"],
  "a stated percent sign": ["repo:acme/%", "repo:acme/app"],
  "a stated underscore": ["repo:acme/_pp", "repo:acme/app"],
  "stated underscores": ["repo:_____", "repo:alpha"],
  "stated anchors": ["^repo:acme$", "repo:acme"],
  "a stated start": ["^repo", "repo:alpha"],
  "a stated end": ["repo$", "repo:alpha"],
};

export const unequalTexts: readonly UnequalTexts[] = [
  ...Object.entries(textEdits).map(([differs, edit]) => ({ differs, stated: EDITABLE, given: edit(EDITABLE) })),
  ...Object.entries(patternLike).map(([differs, [stated, given]]) => ({ differs, stated, given })),
];

const otherScheme: Edit = (url) =>
  url.startsWith("https:") ? url.replace("https:", "http:") : url.replace("http:", "https:");

/** Issuers that are not the issuer. */
export const issuerEdits: Edits = {
  "another issuer": () => "https://issuer.example.org",
  "a slash after it": (issuer) => `${issuer}/`,
  "another path": (issuer) => `${issuer}/tenant`,
  "a path that leads back": (issuer) => `${issuer}/../tenant`,
  "its last character missing": (issuer) => issuer.slice(0, -1),
  "a letter more": (issuer) => `${issuer}x`,
  "a trailing blank": (issuer) => `${issuer} `,
  "a trailing line break": (issuer) => `${issuer}\n`,
  "another case": (issuer) => issuer.toUpperCase(),
  "another scheme": otherScheme,
  "another port": (issuer) => {
    const url = new URL(issuer);
    return issuer.replace(url.host, `${url.hostname}:${url.port === "8443" ? 8444 : 8443}`);
  },
  "a user": (issuer) => issuer.replace("://", "://user@"),
  "another character for a dot": (issuer) => issuer.replace(".", "-"),
  "the query of another": (issuer) => `https://evil.example/?${issuer}`,
};

/** Audiences that do not name the service whose URL is edited. */
export const audienceEdits: Edits = {
  "another service": () => "https://elsewhere.example",
  "two slashes after it": (url) => `${url}//`,
  "another path": (url) => `${url}/x`,
  "its last character missing": (url) => url.slice(0, -1),
  "a digit more": (url) => `${url}0`,
  "a letter before it": (url) => `x${url}`,
  "a longer host": (url) => `${url}.evil.example.org`,
  "another scheme": otherScheme,
  "another case": (url) => url.toUpperCase(),
  "a trailing blank": (url) => `${url} `,
  "itself, twice with a comma": (url) => `${url},${url}`,
  "a star": () => "*",
  nothing: () => "",
};

/** A claim that does not match what an identity states about it. */
export interface StrangeClaim {
  readonly differs: string;
  readonly stated: {
    readonly claims?: Readonly<Record<string, string>>;
    readonly claimPatterns?: Readonly<Record<string, string>>;
  };
  readonly given: Readonly<Record<string, unknown>>;
  /** The claim that is named. */
  readonly claim: string;
  readonly rule: string;
}

const MISSING = "is missing";
const OTHER = "is not what the identity accepts";
const OTHER_TYPE = "is neither text nor boolean";

const strangeClaim = (
  differs: string,
  stated: StrangeClaim["stated"],
  given: StrangeClaim["given"],
  claim: string,
  rule: string,
): StrangeClaim => ({ differs, stated, given, claim, rule });

export const strangeClaims: readonly StrangeClaim[] = [
  strangeClaim("other text", { claims: { ref: "main" } }, { ref: "dev" }, "ref", OTHER),
  strangeClaim("another case", { claims: { ref: "main" } }, { ref: "Main" }, "ref", OTHER),
  strangeClaim("no such claim", { claims: { ref: "main" } }, {}, "ref", MISSING),
  strangeClaim("false for true", { claims: { private: "true" } }, { private: false }, "private", OTHER),
  strangeClaim("false for text", { claims: { ref: "main" } }, { ref: false }, "ref", OTHER),
  strangeClaim("a number", { claims: { run: "7" } }, { run: 7 }, "run", OTHER_TYPE),
  strangeClaim("null", { claims: { ref: "null" } }, { ref: null }, "ref", OTHER_TYPE),
  strangeClaim("a list", { claims: { groups: "admins" } }, { groups: ["admins"] }, "groups", OTHER_TYPE),
  strangeClaim("an object", { claims: { ref: "[object Object]" } }, { ref: {} }, "ref", OTHER_TYPE),
  strangeClaim("a pattern on a part", { claimPatterns: { ref: "main|dev" } }, { ref: "xdev" }, "ref", OTHER),
  strangeClaim("a pattern on nothing", { claimPatterns: { ref: ".*" } }, {}, "ref", MISSING),
  strangeClaim("a pattern on a number", { claimPatterns: { run: ".*" } }, { run: 7 }, "run", OTHER_TYPE),
  strangeClaim("two, the second wrong", { claims: { a: "1", b: "2" } }, { a: "1", b: "3" }, "b", OTHER),
  strangeClaim("a missing text before a pattern", { claims: { z: "1" }, claimPatterns: { a: "1" } }, {}, "z", MISSING),
  strangeClaim(
    "the right text and no claim for the pattern",
    { claims: { ref: "v1" }, claimPatterns: { ref: "v.", constructor: "a+" } },
    { ref: "v1" },
    "constructor",
    MISSING,
  ),
  strangeClaim("what every object has", { claims: { constructor: "x" } }, {}, "constructor", MISSING),
  strangeClaim("a pattern on what every object has", { claimPatterns: { toString: ".*" } }, {}, "toString", MISSING),
];
