// The search of the documentation: the build makes the index, the browser reads it and searches.
import leven from "leven";
import MiniSearch from "minisearch";
import { stemmer } from "stemmer";
import { hints, phrases, stopWords, synonyms, weakWords } from "./search-words.mjs";

/** How much a form of a word counts beside the word itself. */
const FORMS = { synonym: 0.6, prefix: 0.4 };
const WEAK = 0.3;
/** A section counts for less than those of the same page before it, so that one page does not fill the list. */
const REPEATED = 0.6;
const MOST_OF_A_PAGE = 3;
const SNIPPET = 180;

const WORD = /[\p{L}\p{N}]+(?:['’]\p{L}+)?/gu;
// A name such as `ListGroups` is found by its parts too.
const HUMP = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;

/**
 * What is indexed: a section of a page, or a page as a whole.
 *
 * @typedef {object} Entry
 * @property {number} id
 * @property {string} url with the heading of a section
 * @property {string} page the title of the page
 * @property {string} heading
 * @property {string} body what is indexed besides the headings
 * @property {string} text what is shown of it
 * @property {number} rank how much the kind of page counts; 1 for reference
 */

/** Options of MiniSearch, for the index that is built and for the same that is read. */
export const indexOptions = {
  fields: ["page", "heading", "body"],
  storeFields: ["url", "page", "heading", "text", "rank"],
  tokenize: splitWords,
  processTerm: listTerms,
};
const FIELDS = { page: 4, heading: 3, body: 1 };

function splitWords(text) {
  return text.match(WORD) ?? [];
}

/** The terms that a word is indexed by. */
function listTerms(word) {
  const parts = word.split(HUMP);
  return [...new Set(parts.length === 1 ? [toStem(word)] : [toStem(word), ...parts.map(toStem)])];
}

function toStem(word) {
  return stemmer(word.toLowerCase().replaceAll("’", "'").replace(/'s$/, ""));
}

/** Words as sets of stems, which endings do not matter to. */
const stop = new Set(stopWords.map(toStem));
const weak = new Set(weakWords.map(toStem));
const alike = groupSynonyms();
const replaced = Object.entries(phrases).map(([phrase, text]) => ({ ...toSequence(phrase), terms: stemsOf(text) }));
const notices = hints.flatMap(({ words, like, ...hint }) =>
  words.split(", ").map((phrase) => ({ ...toSequence(phrase), terms: stemsOf(like), hint })),
);

function stemsOf(text) {
  return splitWords(text).map(toStem);
}

function toSequence(phrase) {
  return { phrase, stems: stemsOf(phrase) };
}

function groupSynonyms() {
  const found = new Map();
  for (const line of synonyms) {
    const stems = line.map(toStem);
    for (const stem of stems) found.set(stem, new Set([...(found.get(stem) ?? []), ...stems]));
  }
  return found;
}

/** Searches an index. */
export class Search {
  #index;
  /** The words of the pages in their spelling, by which one that is misspelt is found. */
  #words;
  #links;
  /** The entries that were found, by term. */
  #entries = new Map();

  /** @param json what {@link buildIndex} returned */
  constructor({ index, words, links }) {
    this.#index = MiniSearch.loadJS(index, indexOptions);
    this.#words = words;
    this.#links = links;
  }

  /**
   * Finds sections.
   *
   * @returns the best first, with what was corrected, and what Arbor has in place of what it has not
   */
  find(text) {
    const { groups, corrections, found } = this.#readQuery(text);
    return {
      results: this.#order(this.#score(groups)),
      corrections,
      hints: found.map(({ text: notice, to }) => ({ text: notice, ...this.#links[to] })),
    };
  }

  /** The words of a query, each with the terms that it is found by and their weights. */
  #readQuery(text) {
    const words = splitWords(text);
    const stems = words.map(toStem);
    const groups = [];
    const corrections = [];
    const found = new Set();
    const onlyStop = stems.every((stem) => stop.has(stem) || weak.has(stem));
    for (let i = 0; i < words.length; ) {
      const notice = longestAt(notices, stems, i);
      if (notice !== undefined) found.add(notice.hint);
      const phrase = longestAt(replaced, stems, i);
      const sequence = phrase ?? (notice?.stems.length > 1 ? notice : undefined);
      if (sequence !== undefined) {
        const [own, others] = [true, false].map((is) =>
          sequence.terms.filter((term) => sequence.stems.includes(term) === is),
        );
        for (const term of own) groups.push(groupOf([[term, 1]]));
        groups.push(groupOf(others.map((term) => [term, FORMS.synonym])));
        for (const stem of sequence.stems) if (weak.has(stem)) groups.push(groupOf([[stem, 1]], true));
        i += sequence.stems.length;
        continue;
      }
      const word = words[i];
      const stem = stems[i];
      i++;
      const isWeak = weak.has(stem);
      if (stop.has(stem) && !onlyStop) continue;
      const terms = this.#expand(word, stem, i === words.length);
      for (const term of notice?.terms ?? []) terms.set(term, FORMS.synonym);
      if (terms.size > 0) groups.push(groupOf(terms, isWeak && !onlyStop));
      else {
        const right = this.#correct(word.toLowerCase());
        if (right === undefined) continue;
        corrections.push({ word, right });
        groups.push(groupOf(this.#expand(right, toStem(right))));
      }
    }
    return { groups, corrections, found: [...found] };
  }

  /**
   * The terms of a word: itself, words for the same thing, and those that begin with it.
   *
   * @param isTyped whether it may go on
   */
  #expand(word, stem, isTyped = false) {
    const terms = new Map();
    for (const other of alike.get(stem) ?? []) if (this.#has(other)) terms.set(other, FORMS.synonym);
    const start = word.toLowerCase();
    if (start.length > 1 && (isTyped || !this.#has(stem))) {
      for (const longer of this.#words) {
        if (longer.startsWith(start) && longer !== start) terms.set(toStem(longer), FORMS.prefix);
      }
    }
    if (this.#has(stem)) terms.set(stem, 1);
    return terms;
  }

  #has(term) {
    return this.#find(term).size > 0;
  }

  /** The entries that have a term, by id, with how much they are about it: however rare it is. */
  #find(term) {
    let found = this.#entries.get(term);
    if (found !== undefined) return found;
    found = new Map();
    for (const [field, boost] of Object.entries(FIELDS)) {
      const options = { fields: [field], tokenize: (text) => [text], processTerm: (text) => text };
      const hits = this.#index.search(term, options);
      // The library's score has the rarity of the term in the field as a factor.
      const rarity = this.#rarityOf(hits.length);
      for (const hit of hits) {
        const before = found.get(hit.id);
        const weight = (boost * hit.score) / rarity;
        if (before === undefined) found.set(hit.id, { entry: hit, weight });
        else before.weight += weight;
      }
    }
    this.#entries.set(term, found);
    return found;
  }

  /** The factor of BM25 for what so many entries have. */
  #rarityOf(count) {
    return Math.log(1 + (this.#index.documentCount - count + 0.5) / (count + 0.5));
  }

  /** The word that a misspelt one is closest to; of several the one with the same length, and then the most frequent. */
  #correct(word) {
    const most = word.length < 4 ? 0 : word.length < 6 ? 1 : 2;
    let best;
    for (const other of this.#words) {
      const apart = Math.abs(other.length - word.length);
      if (apart > most) continue;
      const distance = leven(word, other);
      if (distance > most || distance > (best?.distance ?? most)) continue;
      const found = { other, distance, apart, count: this.#find(toStem(other)).size };
      if (best === undefined || compare(found, best) < 0) best = found;
    }
    return best?.other;
  }

  /** Adds up the scores of all words. What has only some of them counts for less. */
  #score(groups) {
    const found = new Map();
    const required = groups.filter(({ isWeak }) => !isWeak).length;
    for (const { terms, isWeak } of groups) {
      const hits = this.#findAny(terms);
      // All terms of a word are as rare as the word: one that nearly no page has says no more about it than the others.
      const rarity = this.#rarityOf(hits.size) * (isWeak ? WEAK : 1);
      for (const [id, { entry, weight, matched }] of hits) {
        const before = found.get(id) ?? { entry, score: 0, count: 0, terms: new Set() };
        before.score += weight * rarity;
        before.count += isWeak ? 0 : 1;
        for (const term of matched) before.terms.add(term);
        found.set(id, before);
      }
    }
    return [...found.values()]
      .filter(({ count }) => count > 0)
      .map(({ entry: { url, page, heading, text, rank }, score, count, terms }) => ({
        ...{ url, page, heading, text, terms, isWhole: count === required },
        score: score * (count / required) ** 2 * rank,
      }));
  }

  /** The entries that have one of several terms, with the greatest of their weights. */
  #findAny(terms) {
    const hits = new Map();
    for (const [term, form] of terms) {
      for (const [id, { entry, weight }] of this.#find(term)) {
        const before = hits.get(id);
        if (before === undefined) hits.set(id, { entry, weight: weight * form, matched: [term] });
        else {
          before.matched.push(term);
          before.weight = Math.max(before.weight, weight * form);
        }
      }
    }
    return hits;
  }

  #order(scored) {
    const pages = new Map();
    for (const entry of scored.sort((one, other) => other.score - one.score)) {
      const path = entry.url.split("#", 1)[0];
      pages.set(path, [...(pages.get(path) ?? []), entry]);
    }
    return [...pages.values()]
      .flatMap((entries) => {
        const [section] = entries.filter(({ url }) => url.includes("#"));
        return entries.slice(0, MOST_OF_A_PAGE).map((entry, i) => ({
          ...entry,
          about: entry.url.includes("#") ? entry.text : chooseText(entry, section),
          score: entry.score * REPEATED ** i,
        }));
      })
      .sort((one, other) => other.score - one.score);
  }
}

/** What is shown of a page as a whole: its beginning, or its best section if that has more of the words. */
function chooseText({ text, terms }, section) {
  const count = (one) =>
    new Set(
      splitWords(one)
        .flatMap(listTerms)
        .filter((term) => terms.has(term)),
    ).size;
  return section !== undefined && count(section.text) > count(text) ? section.text : text;
}

function compare(one, other) {
  return one.distance - other.distance || one.apart - other.apart || other.count - one.count;
}

function groupOf(terms, isWeak = false) {
  return { terms: new Map(terms), isWeak };
}

function longestAt(sequences, stems, at) {
  return sequences
    .filter(({ stems: wanted }) => wanted.every((stem, i) => stems[at + i] === stem))
    .sort((one, other) => other.stems.length - one.stems.length)[0];
}

/** Builds the index of entries, in a form that {@link Search} reads. */
export function buildIndex(entries) {
  const index = new MiniSearch(indexOptions);
  index.addAll(entries);
  const words = new Set(
    entries.flatMap(({ page, heading, body }) =>
      splitWords(`${page} ${heading} ${body}`).map((word) => word.toLowerCase().replace(/['’]s$/, "")),
    ),
  );
  return { index: index.toJSON(), words: [...words], links: linkHints(entries) };
}

function linkHints(entries) {
  return Object.fromEntries(
    hints.map(({ to }) => {
      const [page, heading] = to.split("#");
      const url = `${page}.html${heading === undefined ? "" : `#${heading}`}`;
      const entry = entries.find((one) => one.url === url);
      if (entry === undefined) throw new Error(`a hint of the search leads to ${url}, which is not there`);
      return [to, { url, title: entry.heading }];
    }),
  );
}

/**
 * Marks the words that were found.
 *
 * @param isCut whether only the part of a long text is returned that has most of them
 * @returns its parts in order, with whether each is such a word
 */
export function excerpt(text, terms, isCut) {
  const words = [...text.matchAll(WORD)].map(({ 0: word, index }) => ({
    start: index,
    end: index + word.length,
    found: listTerms(word).filter((term) => terms.has(term)),
  }));
  const marked = words.filter(({ found }) => found.length > 0);
  const [from, to] = isCut ? chooseRange(text, marked) : [0, text.length];
  const parts = [{ text: from === 0 ? "" : "… ", isFound: false }];
  let at = from;
  for (const { start, end } of marked) {
    if (start < from || end > to) continue;
    parts.push({ text: text.slice(at, start), isFound: false }, { text: text.slice(start, end), isFound: true });
    at = end;
  }
  parts.push({ text: text.slice(at, to) + (to < text.length ? " …" : ""), isFound: false });
  return parts.filter(({ text: part }) => part !== "");
}

/** The range with most of the words, whole words at both ends. */
function chooseRange(text, marked) {
  if (text.length <= SNIPPET) return [0, text.length];
  let best = { start: 0, count: 0 };
  for (const { start } of marked) {
    const inside = marked.filter((other) => other.start >= start && other.end <= start + SNIPPET - 40);
    const count = new Set(inside.flatMap(({ found }) => found)).size;
    if (count > best.count) best = { start, count };
  }
  const from = best.start < 40 ? 0 : text.indexOf(" ", best.start - 40) + 1;
  const end = from + SNIPPET;
  return [from, end >= text.length ? text.length : text.lastIndexOf(" ", end)];
}
