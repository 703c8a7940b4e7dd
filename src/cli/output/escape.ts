// Control characters, and characters that change the direction or the width of the text beside them.
const ACTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** `text` with all that a terminal may act upon as `\u` escapes. Within JSON these leave its meaning as it is. */
export function escapeControls(text: string): string {
  return text.replace(ACTIVE, (found) => {
    return Array.from(
      { length: found.length },
      (_, i) => `\\u${found.charCodeAt(i).toString(16).padStart(4, "0")}`,
    ).join("");
  });
}

/** `text` with the same escapes, except for the ends of its lines. */
export function escapeLines(text: string): string {
  return text.split("\n").map(escapeControls).join("\n");
}
