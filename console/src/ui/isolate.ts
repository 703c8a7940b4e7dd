/**
 * Wraps a text that tenants have written for places that have no elements, such as the title of the page: characters in it
 * that change the direction of text change nothing beside it (Unicode, annex 9).
 */
export function isolate(text: string): string {
  return `\u2068${text}\u2069`;
}
