// Before the page is drawn, so that it does not flash in the other colours.
(() => {
  const chosen = localStorage.getItem("ibb-theme");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = chosen ?? (dark ? "dark" : "light");
})();
