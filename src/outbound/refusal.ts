/** Why something was not fetched, in words for the operator's log; never shown to a caller. */
export class Refusal extends Error {}
