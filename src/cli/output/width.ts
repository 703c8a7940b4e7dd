// How many columns of a terminal a text takes (UAX #11): ideographs, syllables
// of East Asian scripts, full-width forms and emoji take two, marks that sit on
// another character none.
const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Yi}\p{Script=Tangut}\p{Script=Nushu}\p{Script=Khitan_Small_Script}\p{Emoji_Presentation}\u1100-\u115f\u2329\u232a\u2ff0-\u303e\u3099-\u33ff\ua960-\ua97c\uac00-\ud7a3\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6\u{1f200}-\u{1f265}]/u;
const NARROW = /[\u02ea\u02eb\uff61-\uffdc]/u;
const MARK = /^\p{M}$/u;

const clusters = new Intl.Segmenter("en", { granularity: "grapheme" });

/** The columns that `text` takes; control characters count as one, so it must hold none. */
export function displayWidth(text: string): number {
  // Most cells are uids and names.
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of clusters.segment(text)) width += clusterWidth(segment);
  return width;
}

/** As much of `text` as fits into `width` columns, with an ellipsis at its end where that is not all. */
export function truncated(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let kept = "";
  let taken = 1;
  for (const { segment } of clusters.segment(text)) {
    taken += clusterWidth(segment);
    if (taken > width) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** `text` with spaces behind it up to `width` columns. */
export function padded(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - displayWidth(text)));
}

// What is joined into one cluster is drawn in the place of its widest part.
function clusterWidth(cluster: string): number {
  let width = 0;
  for (const character of cluster) width = Math.max(width, characterWidth(character));
  return width;
}

function characterWidth(character: string): number {
  if (MARK.test(character)) return 0;
  return WIDE.test(character) && !NARROW.test(character) ? 2 : 1;
}
