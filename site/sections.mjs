// The sections of the documentation in the order of the menu, and the pages of docs/ in each. A page is in exactly one;
// test/scripts/site.test.ts checks it. Pages with `file` are not in docs/: they are made when the site is built.

/** @typedef {{ readonly title: string; readonly lead: string; readonly pages: readonly string[] }} Section */

/** @type {readonly Section[]} */
export const sections = [
  {
    title: "Start",
    lead: "Install Arbor, create an organisation and call it.",
    pages: ["first-hour", "demo", "install"],
  },
  {
    title: "Concepts",
    lead: "What a group, an identity, a role, a binding and a token are.",
    pages: ["concepts"],
  },
  {
    title: "How-to",
    lead: "One task on each page.",
    pages: [
      "cli-auth",
      "console",
      "login",
      "scim",
      "workloads",
      "trust",
      "registry",
      "client",
      "stubs",
      "access",
      "apply",
      "audit",
      "token-leaked",
      "offboarding",
      "advisories",
      "migration",
    ],
  },
  {
    title: "Reference",
    lead: "Look up a method, a setting, an error, an event, a command or a role.",
    pages: ["resources", "api-rules", "errors", "settings", "events", "cli", "commands", "roles", "v1"],
  },
  {
    title: "Operate",
    lead: "Run Arbor for others: size, alerts, backups and upgrades.",
    pages: [
      "production",
      "operations",
      "observability",
      "backup",
      "upgrade",
      "scaling",
      "high-availability",
      "host-faults",
      "copy",
    ],
  },
  {
    title: "Understand",
    lead: "How Arbor is built, and why.",
    pages: ["architecture", "security", "gateway", "transcoding", "decisions", "dependencies", "licences"],
  },
];

/** The pages that no file of docs/ has. */
export const madePages = ["resources", "decisions"];
