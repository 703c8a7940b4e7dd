// `arbor iam identities test-claims`: whether a token may assume an identity, and which condition fails.
import { create, type JsonObject } from "@bufbuild/protobuf";
import {
  AccessService,
  ConditionSchema,
  type TestClaimsRequest,
  TestClaimsRequestSchema,
} from "#gen/arbor/access/v1/access_pb.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { invalidFlag, NegativeAnswer } from "../../errors.js";
import { readFlagFileOrInput } from "../../flag-file.js";
import { formatResponse } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { type CommonFlags, isTable } from "../flags.js";
import { withSession } from "../session.js";
import { formatWords } from "./grants.js";

/** The flags; one of the files is required. */
export interface TestClaimsFlags extends CommonFlags {
  readonly identityToken?: string;
  readonly claimsFile?: string;
}

/**
 * `arbor iam identities test-claims`.
 *
 * @throws NegativeAnswer when the token would be rejected
 */
export async function testTokenClaims(identity: string, flags: TestClaimsFlags): Promise<void> {
  const request = create(TestClaimsRequestSchema, { identity, subject: await readSubject(flags) });
  let isAccepted = false;
  await withSession(flags, async ({ call, output }) => {
    const response = await call(AccessService.method.testClaims, request);
    isAccepted = response.accepted === true;
    const { output: format } = flags;
    const head = isAccepted ? "accepted\n" : `rejected: ${escapeControls(String(response.message ?? ""))}\n`;
    const details = () => formatResponse(format, response, () => listDetails(response), output.terminal);
    await output.write(!isTable(format) ? details() : isAccepted ? head : head + details());
  });
  if (!isAccepted) throw new NegativeAnswer("rejected");
}

async function readSubject({ identityToken, claimsFile }: TestClaimsFlags): Promise<TestClaimsRequest["subject"]> {
  if (identityToken !== undefined && claimsFile !== undefined) {
    throw invalidFlag("--identity-token", "give either --identity-token or --claims-file");
  }
  if (identityToken !== undefined) {
    const token = (await readFlagFileOrInput("--identity-token", identityToken)).trim();
    if (token === "") throw invalidFlag("--identity-token", "must name a file that is not empty");
    return { case: "token", value: token };
  }
  if (claimsFile === undefined) throw invalidFlag("--identity-token", "give either --identity-token or --claims-file");
  return { case: "claims", value: parseClaims(await readFlagFileOrInput("--claims-file", claimsFile)) };
}

function parseClaims(text: string): JsonObject {
  let claims: unknown;
  try {
    claims = JSON.parse(text);
  } catch {
    // The error of the parser would contain the text.
  }
  if (!isJsonObject(claims)) throw invalidFlag("--claims-file", "must hold one JSON object, the claims of a token");
  return claims as JsonObject;
}

function listDetails({ failed, claim, expected, actual }: JsonObject): (readonly [field: string, value: string])[] {
  const rows: [field: string, value: unknown][] = [
    ["condition", formatWords(ConditionSchema, failed)],
    ["claim", claim],
    ["expected", expected],
    ["actual", actual],
  ];
  return rows.filter((row): row is [string, string] => typeof row[1] === "string" && row[1] !== "");
}
