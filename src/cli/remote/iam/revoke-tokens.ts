// `arbor iam identities revoke-tokens`: all tokens and sessions of an identity, or one API token.
import { create, type JsonObject, type Message } from "@bufbuild/protobuf";
import {
  RevokePersonTokensRequestSchema,
  RevokeTokensRequestSchema,
  TokensService,
} from "#gen/arbor/tokens/v1/tokens_pb.js";
import { GetIdentityRequestSchema, IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { isUidText } from "../../../kernel/uidp.js";
import { invalidFlag } from "../../errors.js";
import { readFlagFileOrInput } from "../../flag-file.js";
import { confirm } from "../../output/confirm.js";
import { describeRow, formatNamed } from "../../output/describe.js";
import { formatResponse } from "../../output/format.js";
import { escapeControls } from "../../output/terminal.js";
import { decodePart } from "../auth/token-claims.js";
import { type CommonFlags, isTable } from "../flags.js";
import type { MethodCall } from "../method-call.js";
import { withSession } from "../session.js";

const { revokeTokens, revokePersonTokens } = TokensService.method;

/** The flags; without `tokenId` and `leakedToken` all tokens are revoked. */
export interface RevokeTokensFlags extends CommonFlags {
  readonly tokenId?: string;
  readonly leakedToken?: string;
  readonly identityProvider?: string;
  /** Whether to skip the confirmation. */
  readonly yes?: boolean;
}

/** What is to be revoked. */
interface Target {
  /** The uid or the name of the identity. */
  readonly identity: string;
  /** Undefined for all tokens. */
  readonly tokenId: string | undefined;
  /** The uid of the identity that the leaked token names; undefined without one. */
  readonly subject?: string;
}

/**
 * `arbor iam identities revoke-tokens`.
 *
 * @param identity its uid or name; undefined for the one that the leaked token names
 * @throws CommandError INVALID_ARGUMENT for flags that contradict each other; the error of the service
 */
export async function revokeIdentityTokens(
  identity: string | undefined,
  { yes = false, ...flags }: RevokeTokensFlags,
): Promise<void> {
  const target = await findTarget(identity, flags);
  const { tokenId } = target;
  const { identityProvider = "" } = flags;
  await withSession(flags, async ({ call, names, output }) => {
    const uid = await names.find(["identity"], target.identity);
    if (target.subject !== undefined && uid !== target.subject) {
      throw invalidFlag("identity", `the token in --leaked-token is of the identity ${target.subject}`);
    }
    const ofToken = tokenId === undefined ? {} : { tokenId };
    const [method, request] =
      identityProvider === ""
        ? ([revokeTokens, create(RevokeTokensRequestSchema, { uid, ...ofToken })] as const)
        : ([
            revokePersonTokens,
            create(RevokePersonTokensRequestSchema, { identityProvider, uid, ...ofToken }),
          ] as const);
    if (!yes) {
      const what = tokenId === undefined ? "all tokens and sessions" : `the token ${tokenId}`;
      const name = uid === target.identity ? await readName(call, uid) : target.identity;
      await confirm(`Revoke ${what} of ${formatNamed("identity", name, uid)}?`, undefined, "nothing was revoked");
    }
    const response = await call(method, request as Message);
    const { output: format } = flags;
    const done = isTable(format)
      ? describeResponse(response)
      : formatResponse(format, response, () => [], output.terminal);
    await output.write(done);
  });
}

async function findTarget(
  identity: string | undefined,
  { tokenId, leakedToken }: Pick<RevokeTokensFlags, "tokenId" | "leakedToken">,
): Promise<Target> {
  if (tokenId !== undefined && leakedToken !== undefined) {
    throw invalidFlag("--token-id", "give either --token-id or --leaked-token");
  }
  // An empty value, such as of a variable that is not set, must not revoke all.
  if (tokenId === "") throw invalidFlag("--token-id", "must not be empty");
  if (leakedToken === undefined) {
    if (identity === undefined) throw invalidFlag("identity", "is required without --leaked-token");
    return { identity, tokenId };
  }
  const { sub, jti } = decodePart((await readFlagFileOrInput("--leaked-token", leakedToken)).trim(), 1);
  if (typeof sub !== "string" || !isUidText(sub) || typeof jti !== "string" || jti === "") {
    throw invalidFlag(
      "--leaked-token",
      "must name a file with an API token of the service: a JWT with `sub` and `jti`",
    );
  }
  return { identity: identity ?? sub, tokenId: jti, subject: sub };
}

// Who may revoke the tokens of an identity need not be allowed to read it: the question then has the uid alone.
async function readName(call: MethodCall, uid: string): Promise<string> {
  const request = create(GetIdentityRequestSchema, { uid });
  return describeRow(await call(IdentitiesService.method.getIdentity, request).catch(() => ({})));
}

function describeResponse({ uid, tokenId, endedSessions = 0 }: JsonObject): string {
  const of = escapeControls(String(uid));
  if (tokenId !== undefined) return `revoked the token ${escapeControls(String(tokenId))} of ${of}\n`;
  const sessions = endedSessions === 1 ? "1 session" : `${endedSessions} sessions`;
  return `revoked all tokens of ${of}, and ended ${sessions}\n`;
}
