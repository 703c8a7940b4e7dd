// Everything a terminal may act upon instead of showing it: control characters,
// and those that change the direction or the width of what stands beside them.
const ACTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** `text` with such characters as `\u` escapes, which within JSON leave its meaning as it is. */
export function printable(text: string): string {
  return text.replace(ACTIVE, (found) => {
    return Array.from(
      { length: found.length },
      (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, "0")}`,
    ).join("");
  });
}
