// What the pages do in the browser: the search, buttons that copy, the theme, and versions that a link opens.
import "./search-box.js";
import "./copy.js";
import "./theme-switch.js";
import "./open-details.js";

// The menu scrolls in itself: it begins at the page that is open.
const menu = document.querySelector(".menu");
const current = menu.querySelector("[aria-current]");
if (current && getComputedStyle(menu).position === "sticky") menu.scrollTop = current.offsetTop - menu.clientHeight / 2;
