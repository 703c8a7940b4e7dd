// HTML templates. Values are escaped, and can only become text or the value of a quoted attribute.

/** HTML that is safe to send. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

/** A value in a template; undefined renders nothing. */
export type Content = string | Html | readonly Html[] | undefined;

/** Renders a template. Strings are escaped, `Html` values are inserted unchanged. */
export function html(markup: TemplateStringsArray, ...values: readonly Content[]): Html {
  return new Html(String.raw({ raw: markup }, ...values.map(renderContent)));
}

function renderContent(value: Content): string {
  if (value === undefined) return "";
  if (typeof value === "string") return escapeHtml(value);
  return value instanceof Html ? value.markup : value.map((one) => one.markup).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
