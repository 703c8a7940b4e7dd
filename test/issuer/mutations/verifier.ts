// What the campaign asks of both verifiers of tokens alike.
import type { Random } from "../../support/openapi/random.js";
import type { AsGood } from "./as-good.js";
import type { GoodToken, MutationClass } from "./good-token.js";
import type { TokenRules } from "./reference.js";

/** A good token, and where it is presented. */
export interface Candidate {
  readonly good: GoodToken;
  readonly rules: TokenRules;
  /** Whether another text is accepted in its place; the promise rejects when it is neither accepted nor rejected. */
  accepts(text: string): Promise<boolean>;
  /** The same over HTTP. */
  acceptsOverHttp(text: string): Promise<boolean>;
}

/** A verifier of tokens. */
export interface Verifier {
  readonly name: string;
  readonly classes: readonly MutationClass[];
  /** Changes after which a token is as good. */
  readonly asGood: readonly AsGood[];
  /** A good token of now. */
  candidate(random: Random): Candidate;
}

/** A guard that is broken on purpose, to show that the campaign notices. */
export interface Broken {
  /** Tokens for another service are accepted. */
  readonly audience?: boolean;
  /** Keys do not matter: of API tokens any kid leads to the key, of foreign ones neither signature nor times are checked. */
  readonly key?: boolean;
}
