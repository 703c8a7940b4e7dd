// `arbor scim enable`, `disable` and `token`.
import { create, type DescMethodUnary, type Message } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  GenerateScimTokenRequestSchema,
  GetIdentityProviderRequestSchema,
  IdentityProvidersService,
  RegenerateScimTokenRequestSchema,
  RevokeScimTokenRequestSchema,
  SetScimEnabledRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { isJsonObject } from "../../../kernel/strict-json.js";
import { timestampOf } from "../../../kernel/time.js";
import { Code, CommandError } from "../../errors.js";
import { confirm } from "../../output/confirm.js";
import { formatResponse } from "../../output/format.js";
import { type CommonFlags, parseDuration, parseExpiry } from "../flags.js";
import { toDetailRows } from "../iam/run.js";
import { type Session, withSession } from "../session.js";

const methods = IdentityProvidersService.method;

/** The flags of a new token. */
export interface TokenFlags extends CommonFlags {
  /** A time, a duration or `never`. */
  readonly expires?: string;
  /** A duration. */
  readonly overlap?: string;
  /** Whether to skip the confirmation. */
  readonly yes?: boolean;
}

/** `arbor scim enable` and `disable`. */
export async function setEnabled(provider: string, enabled: boolean, flags: CommonFlags): Promise<void> {
  await withProvider(provider, flags, async (session, identityProviderUid) => {
    const etag = await readEtag(session, identityProviderUid);
    const request = create(SetScimEnabledRequestSchema, { identityProviderUid, enabled, etag });
    await print(session, methods.setScimEnabled, request, flags);
  });
}

/** `arbor scim token generate`. */
export async function generateToken(provider: string, flags: TokenFlags): Promise<void> {
  const expiry = parseTokenExpiry(flags);
  await withProvider(provider, flags, async (session, identityProviderUid) => {
    const request = create(GenerateScimTokenRequestSchema, { identityProviderUid, ...expiry });
    await print(session, methods.generateScimToken, request, flags);
  });
}

/** `arbor scim token rotate`. */
export async function rotateToken(provider: string, flags: TokenFlags): Promise<void> {
  const expiry = parseTokenExpiry(flags);
  const { overlap, yes = false } = flags;
  const former = overlap === undefined ? {} : { overlap: durationFromMs(parseDuration("--overlap", overlap)) };
  await withProvider(provider, flags, async (session, identityProviderUid) => {
    const etag = await readEtag(session, identityProviderUid);
    if (!yes) await confirm(`Replace the SCIM token of identity provider ${provider}?`);
    const values = { identityProviderUid, etag, ...former, ...expiry };
    await print(session, methods.regenerateScimToken, create(RegenerateScimTokenRequestSchema, values), flags);
  });
}

/** `arbor scim token revoke`. */
export async function revokeToken(provider: string, { yes = false, ...flags }: TokenFlags): Promise<void> {
  await withProvider(provider, flags, async (session, identityProviderUid) => {
    if (!yes)
      await confirm(`Revoke the SCIM token of identity provider ${provider}?`, undefined, "nothing was revoked");
    const request = create(RevokeScimTokenRequestSchema, { identityProviderUid });
    await print(session, methods.revokeScimToken, request, flags);
  });
}

async function withProvider(
  provider: string,
  flags: CommonFlags,
  work: (session: Session, uid: string) => Promise<void>,
): Promise<void> {
  await withSession(flags, async (session) => work(session, await session.names.find(["identity provider"], provider)));
}

// There is none before the first token.
async function readEtag({ call }: Session, uid: string): Promise<string> {
  const { scim } = await call(methods.getIdentityProvider, create(GetIdentityProviderRequestSchema, { uid }));
  const etag = isJsonObject(scim) ? String(scim.etag ?? "") : "";
  if (etag !== "") return etag;
  throw new CommandError(
    Code.FailedPrecondition,
    "the directory has no token yet: generate one first, with `arbor scim token generate`",
  );
}

function parseTokenExpiry({ expires }: TokenFlags) {
  if (expires === undefined) return {};
  if (expires === "never") return { neverExpires: true };
  return { expireTime: timestampOf(parseExpiry("--expires", expires)) };
}

async function print(
  { call, output }: Session,
  method: DescMethodUnary,
  request: Message,
  { output: format }: CommonFlags,
) {
  const response = await call(method, request);
  const rows = () => toDetailRows(method.output, response);
  await output.write(formatResponse(format, response, rows, output.terminal));
}
