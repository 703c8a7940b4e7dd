// How the header Authorization is written. Tokens that differ from a good one in one thing are in
// test/issuer/strangers, and those of claim-cases.ts differ in what API tokens alone say.
import type { TokenKit } from "../../issuer/strangers/token-kit.js";

/** One presented token. */
export interface TokenCase {
  readonly name: string;
  /** Makes the token. */
  readonly token?: (kit: TokenKit) => string;
  /** Makes the whole header value instead. */
  readonly authorization?: (kit: TokenKit) => string;
  readonly accepted?: boolean;
  /** Refused because it has expired, and for nothing else. */
  readonly expired?: boolean;
  /** Also presented over Connect and gRPC. */
  readonly everywhere?: boolean;
}

const good = (kit: TokenKit) => kit.token();

/** The schemes and the blanks around the token. */
export const schemeCases: readonly TokenCase[] = [
  { name: "a good token", token: good, accepted: true, everywhere: true },
  {
    name: "the scheme in lower case",
    authorization: (kit) => `bearer ${good(kit)}`,
    accepted: true,
    everywhere: true,
  },
  { name: "the scheme in mixed case", authorization: (kit) => `bEaReR ${good(kit)}`, accepted: true },
  {
    name: "two blanks",
    authorization: (kit) => `Bearer  ${good(kit)}`,
    accepted: true,
    everywhere: true,
  },
  {
    name: "a hundred blanks",
    authorization: (kit) => `Bearer${" ".repeat(100)}${good(kit)}`,
    accepted: true,
  },
  { name: "no blank", authorization: (kit) => `Bearer${good(kit)}` },
  { name: "a blank and a tab", authorization: (kit) => `Bearer \t${good(kit)}` },
  { name: "a tab for the blank", authorization: (kit) => `Bearer\t${good(kit)}` },
  { name: "a blank inside the token", authorization: (kit) => `Bearer ${good(kit).replace(".", " .")}` },
  { name: "something behind the token", authorization: (kit) => `Bearer ${good(kit)} x` },
  { name: "no scheme", authorization: good },
  { name: "a scheme alone", authorization: () => "Bearer" },
  { name: "a scheme and a comma", authorization: () => "Bearer ," },
  { name: "Basic", authorization: (kit) => `Basic ${good(kit)}`, everywhere: true },
  { name: "Negotiate", authorization: (kit) => `Negotiate ${good(kit)}` },
  { name: "a scheme of another length", authorization: (kit) => `Token ${good(kit)}` },
  { name: "two schemes", authorization: (kit) => `Bearer Bearer ${good(kit)}` },
  {
    name: "two good tokens, joined by a comma",
    authorization: (kit) => `Bearer ${good(kit)}, Bearer ${good(kit)}`,
  },
  { name: "a good token and a comma", authorization: (kit) => `Bearer ${good(kit)},` },
  { name: "a parameter", authorization: (kit) => `Bearer token="${good(kit)}"` },
  { name: "beyond ASCII", authorization: (kit) => `Bearer \u00e4${good(kit)}` },
];
