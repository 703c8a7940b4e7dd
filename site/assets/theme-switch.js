// The choice of the theme, which theme.js reads at the next page.
const KEY = "arbor-docs-theme";
const field = document.getElementById("frame:theme");
const { dataset } = document.documentElement;

field.value = dataset.theme ?? "system";
field.hidden = false;
field.addEventListener("change", () => {
  const { value } = field;
  if (value === "system") delete dataset.theme;
  else dataset.theme = value;
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // It lasts as long as the page.
  }
});
