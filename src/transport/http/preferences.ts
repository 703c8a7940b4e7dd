// Content negotiation: the weighted lists of Accept and Accept-Encoding (RFC 9110,
// sections 12.4.2, 12.5.1 and 12.5.3).

/** A content coding of responses. */
export type Coding = "br" | "gzip";

/**
 * The coding to send a response in; undefined for none. A caller that accepts none of them gets the
 * response without a coding: that is more useful than an error.
 */
export function codingFor(acceptEncoding: string | undefined): Coding | undefined {
  if (acceptEncoding === undefined) return undefined;
  const weights = parseWeights(acceptEncoding);
  const other = weights.get("*") ?? 0;
  const br = weights.get("br") ?? other;
  const gzip = weights.get("gzip") ?? weights.get("x-gzip") ?? other;
  const best = Math.max(br, gzip);
  // A list without "identity" accepts the plain form as the last resort.
  const plain = weights.get("identity") ?? other;
  if (best === 0 || best < plain) return undefined;
  return br === best ? "br" : "gzip";
}

/** Whether to send a stream as events: the list names them, with no smaller weight than lines of JSON. */
export function prefersEvents(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = parseWeights(accept);
  const events = weights.get("text/event-stream") ?? 0;
  return events > 0 && events >= (weights.get("application/x-ndjson") ?? 0);
}

// Ignores an entry with a malformed weight. Of two entries with the same name the greater weight counts.
function parseWeights(list: string): Map<string, number> {
  const weights = new Map<string, number>();
  for (const entry of list.toLowerCase().split(",")) {
    const [name = "", ...parameters] = entry.split(";").map((text) => text.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    if (name === "" || (q !== undefined && !WEIGHT.test(q))) continue;
    const weight = q === undefined ? 1 : Number(q);
    weights.set(name, Math.max(weight, weights.get(name) ?? 0));
  }
  return weights;
}

const WEIGHT = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;
