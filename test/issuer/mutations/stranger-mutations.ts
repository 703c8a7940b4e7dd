// The tokens of the table of strangers, made of every good token.
import { createTokenKit } from "../strangers/token-kit.js";
import type { StrangeToken } from "../strangers/tokens.js";
import type { MutationClass } from "./good-token.js";

/** Makes the tokens of the table that a verifier must reject. */
export function strangerMutations(tokens: readonly StrangeToken[]): MutationClass {
  return { name: "stranger", weight: 12, mutate: (good, random) => random.pick(tokens).make(createTokenKit(good)) };
}
