// Registering and inviting over REST, for tests of Auth.
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { type Answer, ask } from "./sts/ask.js";
import type { ExchangeWorld, Somebody } from "./sts/exchange-world.js";

/** An invite as its maker gets it. */
export interface Invite {
  readonly uid: string;
  readonly keyId: string;
  readonly code: string;
}

/** What an invite is for; viewer at the root for an hour, made by the owner, unless said otherwise. */
export interface InviteValues {
  readonly group?: string;
  readonly role?: string;
  readonly by?: Pick<Somebody, "token">;
  readonly email?: string;
  readonly singleUse?: boolean;
  readonly ttl?: string;
}

/** Makes an invite by the API. */
export async function invite(world: ExchangeWorld, values: InviteValues = {}): Promise<Invite> {
  const { group = world.root, role = "viewer", by = world.owner, ttl = "3600s", ...rest } = values;
  const json = { roleUid: builtinRoleUid(role), ttl, ...rest };
  const path = `/iam/v2beta1/groupInvites/${group}`;
  const response = await ask(world.url, path, { method: "POST", json, bearer: by.token });
  if (response.status !== 200) throw new Error(response.text);
  return response.json as unknown as Invite;
}

/** `POST /auth/v1/register`. */
export function register(world: ExchangeWorld, bearer: string | undefined, json: object): Promise<Answer> {
  return ask(world.url, "/auth/v1/register", { method: "POST", json, bearer });
}

/** A code with some fields replaced. */
export function changeInvite({ code }: Invite, parts: Readonly<Record<string, unknown>>): string {
  const content = JSON.parse(Buffer.from(code, "base64url").toString()) as object;
  return Buffer.from(JSON.stringify({ ...content, ...parts })).toString("base64url");
}
