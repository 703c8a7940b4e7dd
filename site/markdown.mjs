// How the pages of docs/ are written as HTML: their links lead to pages of the site, headings have the anchors that
// scripts/links.mjs checks, and nothing needs an inline style.
import { posix } from "node:path";
import hljs from "highlight.js";

/** The anchor of a heading: in lower case, with hyphens for blanks. */
export function toAnchor(heading) {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .trim()
    .replaceAll(" ", "-");
}

/**
 * Changes the rules of markdown-it.
 *
 * @param md the renderer
 * @param urls the path of a page in the site by its path in the checkout, such as `docs/cli.md`
 * @param titles the title of a page by the same
 */
export function changeRules(md, urls, titles) {
  const { rules } = md.renderer;
  const renderDefault = (tokens, i, options, _env, self) => self.renderToken(tokens, i, options);

  md.core.ruler.push("anchors", ({ tokens }) => {
    const taken = new Set();
    for (const [i, token] of tokens.entries()) {
      if (token.type !== "heading_open") continue;
      const anchor = toAnchor(textOf(tokens[i + 1]));
      let id = anchor;
      for (let times = 1; taken.has(id); times++) id = `${anchor}-${times}`;
      taken.add(id);
      token.attrSet("id", id);
      tokens[i + 2].meta = { id, text: textOf(tokens[i + 1]) };
    }
  });
  // Beside the heading and not in it, so that its name stays its text. The sign is made by the style.
  rules.heading_open = (tokens, i, options, env, self) =>
    (tokens[i].tag === "h1" ? "" : '<div class="heading">') + renderDefault(tokens, i, options, env, self);
  rules.heading_close = (tokens, i, options, env, self) => {
    const close = renderDefault(tokens, i, options, env, self);
    if (tokens[i].tag === "h1") return close;
    const { id, text } = tokens[i].meta;
    const label = md.utils.escapeHtml(`Link to ${text}`);
    return `${close.trim()}<a class="anchor" href="#${id}" aria-label="${label}"></a></div>\n`;
  };

  // What is wider than the screen scrolls in itself, also by keyboard.
  rules.table_open = () => '<div class="wide" tabindex="0" role="group" aria-label="Table">\n<table>\n';
  rules.table_close = () => "</table>\n</div>\n";
  md.core.ruler.push("headers", ({ tokens }) => {
    for (const [i, token] of tokens.entries()) {
      // A column without a name has no header.
      if (token.type === "th_open" && tokens[i + 1].content === "") token.tag = tokens[i + 2].tag = "td";
    }
  });
  for (const cell of ["th_open", "td_open"]) {
    rules[cell] = (tokens, i, options, env, self) => {
      const style = tokens[i].attrGet("style");
      if (style !== null) {
        tokens[i].attrs = tokens[i].attrs.filter(([name]) => name !== "style");
        tokens[i].attrJoin("class", style.replace("text-align:", ""));
      }
      return renderDefault(tokens, i, options, env, self);
    };
  }
  rules.fence = (tokens, i) => {
    const [language = ""] = tokens[i].info.trim().split(/\s/);
    return `<div class="code"><pre tabindex="0"><code>${colour(tokens[i].content, language)}</code></pre></div>\n`;
  };
  rules.code_block = rules.fence;

  function colour(code, language) {
    if (hljs.getLanguage(language) === undefined) return md.utils.escapeHtml(code);
    return hljs.highlight(code, { language }).value;
  }

  // A link that is called after its file is called after the page.
  md.core.ruler.push("titles", ({ tokens, env }) => {
    for (const { children } of tokens) {
      for (const [i, token] of (children ?? []).entries()) {
        const text = children[i + 1];
        if (token.type !== "link_open" || text?.type !== "text" || !/^[\w./-]+\.md$/.test(text.content)) continue;
        text.content = titles.get(toFile(token.attrGet("href") ?? "", env.source)) ?? text.content;
      }
    }
  });

  // A link to a file that only a checkout has is shown as its text.
  rules.link_open = (tokens, i, options, env, self) => {
    const href = tokens[i].attrGet("href") ?? "";
    const target = resolveLink(href, env.source, urls);
    if (target === undefined) {
      closingOf(tokens, i).meta = { isDropped: true };
      return "";
    }
    tokens[i].attrSet("href", target);
    return renderDefault(tokens, i, options, env, self);
  };
  rules.link_close = (tokens, i, options, env, self) =>
    tokens[i].meta?.isDropped ? "" : renderDefault(tokens, i, options, env, self);
}

function textOf({ children }) {
  return children.map(({ content }) => content).join("");
}

/** The path in the checkout that a link of a file leads to. */
function toFile(href, source = "") {
  return posix.normalize(posix.join(posix.dirname(source), href.split("#", 1)[0]));
}

function closingOf(tokens, at) {
  return tokens.slice(at).find(({ type, level }) => type === "link_close" && level === tokens[at].level);
}

/**
 * The link of a page of the site in place of one of a file.
 *
 * @param source the file that has the link, such as `docs/cli.md`
 * @returns undefined for a file that the site does not have
 */
export function resolveLink(href, source, urls) {
  if (/^(?:[a-z]+:|#)/.test(href) || source === undefined) return href;
  const [, anchor] = href.split("#");
  const url = urls.get(toFile(href, source));
  if (url === undefined) return undefined;
  const from = posix.dirname(urls.get(source) ?? "index.html");
  return posix.relative(from, url) + (anchor === undefined ? "" : `#${anchor}`);
}
