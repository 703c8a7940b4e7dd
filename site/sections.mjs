// The sections of the documentation in the order of the menu, and the pages of docs/ in each. A page is in exactly one;
// test/scripts/site.test.ts checks it.

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
    title: "How-to: people and access",
    lead: "Add people, remove them, and see who may do what.",
    pages: [
      "how-to/add-a-person",
      "how-to/remove-a-person",
      "offboarding",
      "how-to/why-denied",
      "how-to/who-can-read",
      "access",
      "how-to/what-changed",
      "audit",
      "how-to/export-role-bindings",
      "console",
      "cli-auth",
    ],
  },
  {
    title: "How-to: groups and organisations",
    lead: "Rename, move and delete, and keep an organisation in a file.",
    pages: [
      "how-to/rename",
      "how-to/move-a-group",
      "how-to/delete-an-organisation",
      "how-to/quotas",
      "apply",
      "how-to/terraform",
    ],
  },
  {
    title: "How-to: CI, tokens and events",
    lead: "Let jobs and programs in, and tell other services.",
    pages: ["how-to/github-actions", "workloads", "trust", "token-leaked", "how-to/slack"],
  },
  {
    title: "How-to: programs",
    lead: "Call the API from your own program, in several languages.",
    pages: [
      "client",
      "stubs",
      "examples",
      "examples/typescript",
      "examples/curl",
      "examples/python",
      "examples/go",
      "examples/github-actions",
      "examples/receivers",
      "how-to/browsers",
      "migration",
    ],
  },
  {
    title: "How-to: registry",
    lead: "Push and pull images with Arbor's tokens.",
    pages: ["registry", "how-to/rotate-a-pull-token", "examples/docker-registry", "advisories"],
  },
  {
    title: "How-to: run the service",
    lead: "One task of an operator on each page.",
    pages: [
      "how-to/nightly-backup",
      "how-to/rotate-keys",
      "how-to/postgresql",
      "how-to/nginx",
      "kubernetes",
      "how-to/supported-systems",
    ],
  },
  {
    title: "How-to: login providers",
    lead: "Let people sign in, with the settings of both sides.",
    pages: [
      "login",
      "scim",
      "how-to/login-google",
      "how-to/login-github",
      "how-to/login-gitlab",
      "how-to/login-entra-id",
      "how-to/login-okta",
      "how-to/login-keycloak",
      "how-to/login-auth0",
      "how-to/login-cognito",
      "how-to/login-dex",
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

/** The files of pages that are not in docs/. */
export const otherFiles = {
  kubernetes: "deploy/kubernetes/README.md",
  examples: "examples/README.md",
  ...Object.fromEntries(
    ["curl", "docker-registry", "github-actions", "go", "python", "receivers", "typescript"].map((name) => [
      `examples/${name}`,
      `examples/${name}/README.md`,
    ]),
  ),
};

/** The file of a page. */
export function fileOf(name) {
  return otherFiles[name] ?? `docs/${name}.md`;
}
