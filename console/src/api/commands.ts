// The same action on the command line: as an HTTP request, and with `arbor`. Both are shown beside every action.

export interface Action {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE" | "PUT";
  readonly path: string;
  readonly body?: object;
  /** The arguments of `arbor`. */
  readonly arbor: readonly string[];
}

/** Formats an action as a line of curl, for a shell with the token in `$TOKEN`. */
export function formatCurl({ method, path, body }: Action): string {
  const words = ["curl", "-sS", "--fail-with-body"];
  if (method !== "GET") words.push("-X", method);
  const line = `${words.join(" ")} -H "authorization: Bearer $TOKEN"`;
  const data = body === undefined ? "" : ` -H 'content-type: application/json' -d ${quote(JSON.stringify(body))}`;
  return `${line}${data} ${quote(`${location.origin}${path}`)}`;
}

/** Formats an action as a line of `arbor`. */
export function formatArbor({ arbor }: Action): string {
  return ["arbor", ...arbor.map(quote)].join(" ");
}

function quote(word: string): string {
  return /^[A-Za-z0-9_./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
