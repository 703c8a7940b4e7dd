// One wrong claim in a token whose form and signature are valid. The claim is absent, or wrong by type, by value or
// by an edit.
import type { Random } from "../../support/openapi/random.js";
import type { Edit } from "../strangers/texts.js";
import { farTimes, type TimeLimits, wrongTimes } from "../strangers/times.js";
import { type GoodToken, type Mutation, type MutationClass, signParts } from "./good-token.js";
import { editText, otherType } from "./wrong-values.js";

/** A value that a claim must not have; undefined where the claim is to be left out. */
export type WrongValue = (good: GoodToken, random: Random) => unknown;

const WEIGHT = 36;

/** The classes of a table of wrong values by claim: with the times two fifths of a campaign. */
export function claimMutations(wrong: Readonly<Record<string, WrongValue>>): MutationClass[] {
  const names = Object.keys(wrong);
  return names.map((name) => ({
    name: `claim ${name}`,
    weight: WEIGHT / names.length,
    oneClaim: true,
    mutate: setting(name, wrong[name] as WrongValue),
  }));
}

function setting(name: string, wrong: WrongValue): Mutation {
  return (good, random) => {
    const value = random.chance(0.25) ? otherType(good.claims[name], random) : wrong(good, random);
    const claims = { ...good.claims, [name]: value };
    return signParts(good.header, claims, good.key);
  };
}

/** Wrong times, and times of another type. */
export function timeMutations(limits: TimeLimits): MutationClass {
  return {
    name: "claim iat, nbf, exp",
    weight: 14,
    oneClaim: true,
    mutate({ header, claims, key }, random) {
      const name = random.pick(["iat", "nbf", "exp"]);
      const nowS = Math.floor(Date.now() / 1000);
      const changes = random.chance(0.25)
        ? { [name]: otherType(claims[name], random) }
        : random.pick([...wrongTimes, ...farTimes]).make(nowS, beyond(6, random), limits);
      return signParts(header, { ...claims, ...changes }, key);
    },
  };
}

/** One of the edits of a text. */
export function editBy(edits: Readonly<Record<string, Edit>>, right: string, random: Random): string {
  return random.pick(Object.values(edits))(right);
}

/** A wrong text: one of a list, or the right one with a small edit. */
export function wrongText(
  name: string,
  ...others: readonly ((right: string, random: Random) => unknown)[]
): WrongValue {
  return ({ claims }, random) => {
    const right = String(claims[name] ?? "");
    return others.length > 0 && random.chance(0.5) ? random.pick(others)(right, random) : editText(right, random);
  };
}

/** A length of time in seconds beyond `least`, mostly a little and sometimes years. */
export function beyond(least: number, random: Random): number {
  return least + 1 + (random.chance(0.7) ? random.int(600) : random.int(random.pick([86_400, 31_536_000, 10 ** 9])));
}

/**
 * How long ago a token was issued, in seconds: a while, or so lately that what expires before it was
 * issued is still within the leeway, and rejected for that alone.
 */
export function ageS(random: Random): number {
  return random.int(random.pick([10, 3_000]));
}
