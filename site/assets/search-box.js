// The search of the documentation. It runs in the browser: the index is a file of the site, loaded when somebody begins
// to search.
import { excerpt, Search } from "../search.mjs";

const MOST = 12;
const script = document.currentScript;
const { root } = script.dataset;
const indexAddress = script.src.replace(/\.js$/, ".index.js");
const box = document.getElementById("frame:search");
const query = document.getElementById("frame:query");
const results = document.getElementById("frame:results");
const status = results.querySelector("[role=status]");
const notes = results.querySelector(".hints");
const list = results.querySelector("ol");

// The page of the API had this address, with an operation after the `#`.
if (location.hash.startsWith("#/")) location.replace(`${root}api${location.hash}`);

let loading;

// A script, because a page that is opened as a file may load scripts but fetch nothing.
function loadIndex() {
  loading ??= new Promise((resolve, reject) => {
    const loader = document.createElement("script");
    loader.src = indexAddress;
    loader.onload = () => resolve(new Search(globalThis.arborIndex));
    loader.onerror = () => {
      loading = undefined;
      reject(new Error("the index cannot be loaded"));
    };
    document.head.append(loader);
  });
  return loading;
}

async function show() {
  const text = query.value.trim();
  if (text === "") return close();
  results.hidden = false;
  try {
    const search = await loadIndex();
    if (text === query.value.trim()) draw(search.find(text));
  } catch (error) {
    status.textContent = `Search does not work: ${error.message}.`;
  }
}

function draw({ results: found, corrections, hints }) {
  status.textContent = summarize(found, corrections);
  notes.replaceChildren(...hints.map(drawHint));
  list.replaceChildren(...found.slice(0, MOST).map(drawResult));
}

function summarize(found, corrections) {
  const instead = corrections.map(
    ({ word, right }) => `“${word}” is not in the documentation, this is for “${right}”. `,
  );
  return `${instead.join("")}${count(found)}`;
}

function count(found) {
  if (found.length === 0) return "Nothing found.";
  const whole = found.filter(({ isWhole }) => isWhole).length;
  return whole === 0 ? "Nothing has all the words, this has some of them." : `${whole} found`;
}

function drawHint({ text, url, title }) {
  const link = makeLink(url, title);
  const item = document.createElement("li");
  item.append(`${text} `, link);
  return item;
}

function drawResult({ url, page, heading, about, terms }) {
  const link = makeLink(url, ...mark(heading === page ? page : `${page}: ${heading}`, terms));
  const text = document.createElement("span");
  text.append(...mark(about, terms, true));
  const item = document.createElement("li");
  item.append(link, text);
  return item;
}

function makeLink(url, ...content) {
  const link = document.createElement("a");
  link.href = root + url;
  link.append(...content);
  return link;
}

function mark(text, terms, isCut = false) {
  return excerpt(text, terms, isCut).map(({ text: part, isFound }) => {
    if (!isFound) return part;
    const marked = document.createElement("mark");
    marked.textContent = part;
    return marked;
  });
}

function close() {
  results.hidden = true;
  notes.replaceChildren();
  list.replaceChildren();
}

function moveFocus(step) {
  const places = [query, ...results.querySelectorAll("a")];
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
results.addEventListener("click", ({ target }) => {
  if (target.closest("a")) close();
});
document.addEventListener("click", ({ target }) => {
  if (!box.contains(target)) results.hidden = true;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  query.focus();
});
