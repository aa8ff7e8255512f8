// Runs before the bundle arrives: sets the theme, so that the first frame has the right colours, and starts the first requests.
(function () {
  "use strict";
  var root = document.documentElement;
  var theme = null;
  try {
    theme = localStorage.getItem("tradewind.theme");
    var language = localStorage.getItem("tradewind.language");
    if (language) root.lang = language;
  } catch {
    // Storage is forbidden: the page keeps to the system's theme.
  }
  if (theme !== "light" && theme !== "dark") theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.theme = theme;

  var first = {};
  window.tradewindFirst = first;
  function get(path) {
    first[path] = fetch(path, { credentials: "same-origin", headers: { Accept: "application/json" } });
    first[path].catch(function () {});
  }
  var path = location.pathname;
  if (path === "/login") return;
  get("/api/tradewind/v1/me");
  var grid = /^\/dags\/([^/]+)\/grid$/.exec(path);
  if (path === "/") get("/api/tradewind/v1/triage");
  else if (grid) {
    get("/api/tradewind/v1/dags/" + grid[1] + "/structure");
    // The same address as in pages/grid/query.ts, or the answer is fetched twice.
    var runs = /[?&]runs=(\d+)/.exec(location.search), before = /[?&]before=([^&]+)/.exec(location.search);
    var cells = "/cells?runs=" + ((runs && Number(runs[1])) || 50) + "&head=true" + (before ? "&before=" + before[1] : "");
    get("/api/tradewind/v1/dags/" + grid[1] + cells);
  }
})();
