// Markup. Whatever is put into it is escaped here, and can be nothing but text
// or the value of a quoted attribute.

/** Markup that is safe to send. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

/** What may stand in markup; undefined is nothing. */
export type Content = string | Html | readonly Html[] | undefined;

/** Markup with values in it: text is escaped, markup stands as it is. */
export function html(markup: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(String.raw({ raw: markup }, ...values.map(markupOf)));
}

function markupOf(value: Content): string {
  if (value === undefined) return "";
  if (typeof value === "string") return escaped(value);
  return value instanceof Html ? value.markup : value.map((one) => one.markup).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
