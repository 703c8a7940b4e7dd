// A link to what is folded away unfolds it. Newer browsers do so themselves.
function open() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest("details:not([open])");
  if (!folded) return;
  folded.open = true;
  target.scrollIntoView();
}

addEventListener("hashchange", open);
open();
