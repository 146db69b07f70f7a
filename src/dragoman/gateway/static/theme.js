// Runs before anything is drawn, so that a chosen theme never flashes: light, dark, or the system's.
(() => {
  let chosen = "";
  try { chosen = localStorage.getItem("theme") || ""; } catch { /* no storage: the system's */ }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
