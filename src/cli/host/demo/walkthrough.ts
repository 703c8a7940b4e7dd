// The text that the demo prints: commands that work in any POSIX shell when they are pasted one after another.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CONSOLE_PATH } from "../../../kernel/web.js";
import { ORGANISATION, type SampleOrganisation } from "./organisation.js";

/** The values in the text. */
export interface DemoFacts {
  /** The URL of the service. */
  readonly url: string;
  /** The URL of the provider. */
  readonly issuer: string;
  /** The directory of the demo. */
  readonly data: string;
  /** The file with a valid OIDC token of the workload. */
  readonly workloadToken: string;
  readonly organisation: SampleOrganisation;
}

export interface AnnouncementOptions {
  /** Whether the directory stays after the demo. */
  readonly kept: boolean;
  /** Whether the build has written the console. */
  readonly hasConsole: boolean;
}

interface Step {
  readonly text: string;
  readonly commands: readonly string[];
}

/** Formats the text that the demo prints when it is ready. */
export function formatAnnouncement(demo: DemoFacts, { kept, hasConsole }: AnnouncementOptions): string {
  const { url, issuer, data } = demo;
  const head = `The demo of Arbor is ready. It is for trying out only: whoever uses this machine can sign in as anybody.

  console  ${url}${CONSOLE_PATH}${hasConsole ? "" : ", which npm run build writes"}
  service  ${url}, its reference at ${url}/docs
  login    ${issuer}, where you are Alice, the owner of ${ORGANISATION}, or Bob
  data     ${data}, ${kept ? "kept for the next time" : "gone when the demo ends"}

Paste these into another terminal, from the top. Ctrl-C here ends the demo.
`;
  const steps = createSteps(demo).map(({ text, commands }) => {
    return `\n${text}:\n\n${commands.map((command) => `  ${command}\n`).join("")}`;
  });
  return head + steps.join("");
}

function createSteps({ url, data, workloadToken, organisation }: DemoFacts): readonly Step[] {
  const { platform, workload, builder } = organisation;
  const curl = (token: string) => `curl -sS -w '\\n' -H "Authorization: Bearer ${token}"`;
  const json = "-H 'Content-Type: application/json'";
  const iam = "$ARBOR_API/iam/v2beta1";
  return [
    {
      text: "Say where things are, and what arbor is",
      commands: [
        `export ARBOR_API=${url} ARBOR_CREDENTIALS=${quote(join(data, "credentials.json"))}`,
        `PLATFORM=${platform} WORKLOAD=${workload} BUILDER=${builder}`,
        `arbor() { ${findArborCommand()} "$@"; }`,
      ],
    },
    {
      text: "A workload exchanges the OIDC token of its platform for an API token, and lists the groups",
      commands: [
        `OIDC_TOKEN=$(cat ${quote(workloadToken)})`,
        `TOKEN=$(curl -sS -G -H "Authorization: Bearer $OIDC_TOKEN" -d "aud=$ARBOR_API" -d "identity=$WORKLOAD" "$ARBOR_API/sts/exchange" | node -p 'JSON.parse(fs.readFileSync(0)).token')`,
        `${curl("$TOKEN")} "${iam}/groups?order_by=name"`,
      ],
    },
    {
      text: "Sign in as Alice with a browser, and list them as her",
      commands: ["arbor auth login", "arbor iam groups list --order-by name"],
    },
    {
      text: "As Alice, let the workload create groups in platform; the token it has will do for that",
      commands: [
        `${curl("$(arbor auth token)")} ${json} -d '{"identityUid":"'$WORKLOAD'","roleUid":"'$BUILDER'"}' "${iam}/roleBindings/$PLATFORM"`,
        `${curl("$TOKEN")} ${json} -d '{"name":"built by ci"}' "${iam}/groups/$PLATFORM"`,
        "arbor iam role-bindings list",
      ],
    },
  ];
}

// In a checkout that was not compiled the program runs through tsx, as its npm script does. The script itself would run in
// the directory of the checkout, where relative paths of the user mean other files.
function findArborCommand(): string {
  const pathOf = (name: string) => quote(fileURLToPath(new URL(`../../../${name}`, import.meta.url)));
  if (!import.meta.url.endsWith(".ts")) return `node ${pathOf("main.js")}`;
  return `node --import ${pathOf("../node_modules/tsx/dist/loader.mjs")} ${pathOf("main.ts")}`;
}

function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
