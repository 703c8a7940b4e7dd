// `arbor whoami`: the identity of the token, and its roles.
import { create, type JsonObject } from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { Auth } from "#gen/chainguard/platform/auth/auth_pb.js";
import { GetIdentityRequestSchema, IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { formatResponse } from "../../output/format.js";
import type { CommonFlags } from "../flags.js";
import { type Session, withSession } from "../session.js";

/** `arbor whoami`. */
export async function printCaller(flags: CommonFlags): Promise<void> {
  await withSession(flags, async ({ call, credential, output }) => {
    const caller = await call(Auth.method.validate, create(EmptySchema));
    const name = await findName(call, String(caller.subject));
    const response = { ...caller, ...(name !== "" && { name }), ...(credential !== undefined && { credential }) };
    await output.write(formatResponse(flags.output, response, () => toRows(response), output.terminal));
  });
}

// The token has the name of the login. People may have changed it since, and other identities may not read themselves.
async function findName(call: Session["call"], uid: string): Promise<string> {
  const request = create(GetIdentityRequestSchema, { uid });
  return call(IdentitiesService.method.getIdentity, request).then(
    ({ name }) => String(name ?? ""),
    () => "",
  );
}

type Row = readonly [field: string, value: string];

function toRows({ subject, name, email, issuer, audience, expiry, credential, capabilities = [] }: JsonObject): Row[] {
  const rows: [field: string, value: unknown][] = [
    ["identity", subject],
    ["name", name],
    ["email", email],
    ["issuer", issuer],
    ["audience", Array.isArray(audience) ? audience.join(", ") : audience],
    ["token expires", expiry],
    ["credential", credential],
    ...(capabilities as JsonObject[]).map((one): [string, string] => ["role", formatRole(one)]),
  ];
  return rows.filter((row): row is [string, string] => typeof row[1] === "string" && row[1] !== "");
}

// A token may permit less than its role.
function formatRole({ role, group, capabilities = [] }: JsonObject): string {
  const { id, name } = group as JsonObject;
  const count = (capabilities as string[]).length;
  return `${(role as JsonObject).name} in ${name} (${id}), ${count} ${count === 1 ? "capability" : "capabilities"}`;
}
