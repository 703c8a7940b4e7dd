// A button at each block of code that copies it.
const status = document.querySelector(".live");

for (const block of document.querySelectorAll(".code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => void copy(block.querySelector("code"), button));
  block.append(button);
}

async function copy(code, button) {
  // Without the last line break, at which a terminal would run what is pasted.
  const isCopied = (await writeClipboard(code.textContent.trimEnd())) || copySelected(code);
  button.textContent = isCopied ? "Copied" : "Press Ctrl+C";
  status.textContent = isCopied ? "Copied" : "Selected. Press Ctrl+C to copy";
  setTimeout(() => {
    button.textContent = "Copy";
    status.textContent = "";
  }, 2_000);
}

async function writeClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

// Over http, and in files, browsers have no clipboard for scripts, but copy what is selected.
function copySelected(code) {
  const selection = getSelection();
  selection.selectAllChildren(code);
  if (!document.execCommand("copy")) return false;
  selection.removeAllRanges();
  return true;
}
