// `/docs/guide/`: the pages of docs/, which every package contains, so that they can be read without internet access
// and match the running version. A page is read at its first request.
import { readdirSync, readFileSync } from "node:fs";
import type { RouteGroup } from "../http/health-routes.js";
import { answerWith, createStaticDocument, type StaticDocument } from "../http/static-document.js";
import { formatPage, GUIDE_PATH, PAGE_HEADERS } from "./home.js";

const FOLDER = new URL("../../../docs/", import.meta.url);
/** The folder of decision records, which other pages link to. */
const DECISIONS = "adr/";
const FRESH = { "cache-control": "no-cache" };

/**
 * Creates the routes: a list of the pages, and each page as text under its file name, so that links between pages work.
 *
 * @param folder the folder with the pages; without it there are no routes
 */
export function createGuide(folder: URL = FOLDER): RouteGroup {
  let documents: ReadonlyMap<string, StaticDocument> | undefined;

  function readDocuments(): ReadonlyMap<string, StaticDocument> {
    const names = [...listFiles(folder), ...listFiles(new URL(DECISIONS, folder)).map((name) => DECISIONS + name)];
    const list = createStaticDocument({
      contentType: "text/html; charset=utf-8",
      headers: PAGE_HEADERS,
      load: () => formatList(names.filter((name) => name.endsWith(".md")).map((name) => describePage(name, folder))),
    });
    const pages = names.map((name): [string, StaticDocument] => [`${GUIDE_PATH}${name}`, createPage(name, folder)]);
    return new Map(names.length === 0 ? [] : [[GUIDE_PATH, list], [GUIDE_PATH.slice(0, -1), list], ...pages]);
  }

  return {
    paths: [GUIDE_PATH.slice(0, -1), `${GUIDE_PATH}*`],
    handle(method, path, res) {
      if (!`${path}/`.startsWith(GUIDE_PATH)) return false;
      documents ??= readDocuments();
      return answerWith(documents.get(path), method, res);
    },
  };
}

function listFiles(folder: URL): string[] {
  try {
    return readdirSync(folder).filter((name) => /^[\w-][\w.-]*\.(?:md|json)$/.test(name));
  } catch {
    return [];
  }
}

// Plain text, because browsers download Markdown instead of showing it.
function createPage(name: string, folder: URL): StaticDocument {
  const contentType = name.endsWith(".json") ? "application/json" : "text/plain; charset=utf-8";
  return createStaticDocument({ contentType, headers: FRESH, load: () => readFileSync(new URL(name, folder)) });
}

interface Page {
  readonly name: string;
  readonly title: string;
}

function describePage(name: string, folder: URL): Page {
  const [, title = name] = /^# (.+)$/m.exec(readFileSync(new URL(name, folder), "utf8")) ?? [];
  return { name, title: title.replaceAll("`", "") };
}

function formatList(pages: readonly Page[]): string {
  const format = (some: readonly Page[]) => some.map(formatEntry).join("\n");
  const isDecision = ({ name }: Page) => name.startsWith(DECISIONS);
  return formatPage(
    "Arbor: documentation",
    `<h1>Documentation</h1>
<p>For operators and developers, of the version that runs here.</p>
<dl>
${format(pages.filter((page) => !isDecision(page)))}
</dl>
<h2>Decisions</h2>
<dl>
${format(pages.filter(isDecision))}
</dl>`,
  );
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

function formatEntry({ name, title }: Page): string {
  const text = title.replace(/[&<>]/g, (character) => entities[character] ?? character);
  return `<dt><a href="${GUIDE_PATH}${name}">${text}</a></dt>\n<dd>${name}</dd>`;
}
