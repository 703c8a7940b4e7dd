// Patterns of whole numbers between two others, because JSON Schema has no range for numbers in text.

/** The pattern of the whole numbers from `min` to `max`, with at most `digits` digits; zeros may come first. */
export function numberPattern(min: number, max: number, digits: number): string {
  const choices: string[] = [];
  for (let length = String(min).length; length <= String(max).length; length++) {
    const least = Math.max(min, length === 1 ? 0 : 10 ** (length - 1));
    choices.push(sameLength(String(least), String(Math.min(max, 10 ** length - 1))));
  }
  return `(?![0-9]{${digits + 1}})0*(?:${choices.join("|")})`;
}

/** The pattern of numbers that are a multiple of one of some units, such as `90s`, between two others. */
export function unitPattern(units: Readonly<Record<string, number>>, min: number, max: number, digits: number): string {
  const choices = Object.entries(units).flatMap(([unit, factor]) => {
    const [least, most] = [Math.ceil(min / factor), Math.min(Math.floor(max / factor), 10 ** digits - 1)];
    return least > most ? [] : [`${numberPattern(least, most, digits)}${unit}`];
  });
  return `^(?:${choices.join("|")})$`;
}

function sameLength(min: string, max: string): string {
  if (/^0*$/.test(min) && /^9*$/.test(max)) return min === "" ? "" : `[0-9]{${min.length}}`;
  const [low, high] = [Number(min[0]), Number(max[0])];
  if (low === high) return `${low}${sameLength(min.slice(1), max.slice(1))}`;
  const rest = min.length - 1;
  return `(?:${[
    `${low}${sameLength(min.slice(1), "9".repeat(rest))}`,
    ...(high - low > 1 ? [`[${low + 1}-${high - 1}]${sameLength("0".repeat(rest), "9".repeat(rest))}`] : []),
    `${high}${sameLength("0".repeat(rest), max.slice(1))}`,
  ].join("|")})`;
}
