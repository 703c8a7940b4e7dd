// The search of the documentation. It runs in the browser: the index is a file of the site, loaded when somebody begins
// to search.
import MiniSearch from "minisearch";
import { searchOptions } from "../search-options.mjs";

const MOST = 12;
const { root } = document.currentScript.dataset;
const indexAddress = document.currentScript.src.replace(/\.js$/, ".index.js");
const box = document.querySelector("#search");
const query = document.querySelector("#query");
const results = document.querySelector("#results");
const status = results.querySelector("[role=status]");
const list = results.querySelector("ol");

// The page of the API had this address, with an operation after the `#`.
if (location.hash.startsWith("#/")) location.replace(`${root}api${location.hash}`);

let loading;

// A script, because a page that is opened as a file may load scripts but fetch nothing.
function loadIndex() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = indexAddress;
    script.onload = () => resolve(MiniSearch.loadJS(globalThis.arborIndex, searchOptions));
    script.onerror = () => {
      loading = undefined;
      reject(new Error("the index cannot be loaded"));
    };
    document.head.append(script);
  });
  return loading;
}

async function show() {
  const text = query.value.trim();
  if (text === "") return close();
  results.hidden = false;
  try {
    const index = await loadIndex();
    if (text === query.value.trim()) draw(index.search(text));
  } catch (error) {
    status.textContent = `Search does not work: ${error.message}.`;
  }
}

function draw(found) {
  const shown = found.slice(0, MOST);
  status.textContent = found.length === 0 ? "Nothing found." : `${found.length} found`;
  list.replaceChildren(
    ...shown.map(({ url, page, heading, text }) => {
      const link = document.createElement("a");
      link.href = root + url;
      link.textContent = heading === page ? page : `${page}: ${heading}`;
      const about = document.createElement("span");
      about.textContent = text;
      const item = document.createElement("li");
      item.append(link, about);
      return item;
    }),
  );
}

function close() {
  results.hidden = true;
  list.replaceChildren();
}

function moveFocus(step) {
  const places = [query, ...list.querySelectorAll("a")];
  const next = places[places.indexOf(document.activeElement) + step];
  next?.focus();
}

box.hidden = false;
query.addEventListener("focus", () => void loadIndex().catch(() => {}), { once: true });
query.addEventListener("input", () => void show());
box.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  list.querySelector("a")?.click();
});
box.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    close();
    query.focus();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    moveFocus(event.key === "ArrowDown" ? 1 : -1);
  }
});
box.addEventListener("click", ({ target }) => {
  if (target.closest("#results a")) close();
});
document.addEventListener("click", ({ target }) => {
  if (!box.contains(target)) results.hidden = true;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea")) return;
  event.preventDefault();
  query.focus();
});
