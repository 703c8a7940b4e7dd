import { createHash } from "node:crypto";

// Digits and letters that are not taken for one another and spell no words.
const LETTERS = "23456789cfghjmpqrvwx";
const SIZE = 12;

/**
 * An id such as `CGA-xvgw-cvr7-9g2q`, a pure function of `seed`.
 *
 * @param attempt counts up from 0 where an id is taken: there are 20^12, so that happens once in a
 * million imports of 100,000
 */
export function advisoryIdOf(seed: string, attempt = 0): string {
  const digest = createHash("sha256")
    .update(JSON.stringify(["arbor advisory", seed, attempt]))
    .digest("hex");
  let rest = BigInt(`0x${digest}`);
  let text = "";
  for (let i = 0; i < SIZE; i++) {
    text += LETTERS[Number(rest % 20n)];
    rest /= 20n;
  }
  return `CGA-${text.slice(0, 4)}-${text.slice(4, 8)}-${text.slice(8)}`;
}
