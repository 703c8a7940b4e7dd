// Before anything is drawn: the theme that somebody has chosen, unless it is that of the system.
(() => {
  try {
    const theme = localStorage.getItem("arbor-docs-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // A browser may keep nothing.
  }
})();
