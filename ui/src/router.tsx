// All addresses of the page. The bar, triage and the grid are in the first file, because most visits begin there; each other page is a
// file of its own, loaded when it is opened first.
import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, redirect } from "@tanstack/react-router";

import { parseSearch, searchText, type Search } from "./address";
import DagPage from "./pages/dag/DagPage";
import GridTab from "./pages/grid/GridTab";
import TriagePage from "./pages/triage/TriagePage";
import { MissingPage, NotFoundPage, RouteError } from "./shell/fallbacks";
import Shell from "./shell/Shell";

const root = createRootRoute({
  component: Outlet,
  validateSearch: (search: Record<string, unknown>) => search as Search,
  notFoundComponent: NotFoundPage,
  errorComponent: RouteError,
});

const login = createRoute({ getParentRoute: () => root, path: "/login", component: lazyRouteComponent(() => import("./pages/login/LoginPage")) });
const shell = createRoute({ getParentRoute: () => root, id: "shell", component: Shell });

const triage = createRoute({ getParentRoute: () => shell, path: "/", component: TriagePage });
const dags = createRoute({ getParentRoute: () => shell, path: "/dags", component: lazyRouteComponent(() => import("./pages/dags/DagsPage")) });
const runs = createRoute({ getParentRoute: () => shell, path: "/runs", component: lazyRouteComponent(() => import("./pages/runs/RunsPage")) });
const approvals = createRoute({ getParentRoute: () => shell, path: "/approvals", component: lazyRouteComponent(() => import("./pages/approvals/ApprovalsPage")) });
const assets = createRoute({ getParentRoute: () => shell, path: "/assets", component: lazyRouteComponent(() => import("./pages/assets/AssetsPage")) });
const asset = createRoute({ getParentRoute: () => shell, path: "/assets/$assetId", component: lazyRouteComponent(() => import("./pages/assets/AssetPage")) });
const pools = createRoute({ getParentRoute: () => shell, path: "/pools", component: lazyRouteComponent(() => import("./pages/pools/PoolsPage")) });
const pool = createRoute({ getParentRoute: () => shell, path: "/pools/$pool", component: lazyRouteComponent(() => import("./pages/pools/PoolPage")) });
const admin = createRoute({ getParentRoute: () => shell, path: "/admin", beforeLoad: () => { throw redirect({ to: "/admin/$section", params: { section: "variables" } }); } });
const adminSection = createRoute({ getParentRoute: () => shell, path: "/admin/$section", component: lazyRouteComponent(() => import("./pages/admin/AdminPage")) });

const elsewhere = createRoute({ getParentRoute: () => shell, path: "/$", component: NotFoundPage });

const dag = createRoute({ getParentRoute: () => shell, path: "/dags/$dagId", component: DagPage, errorComponent: MissingPage });
const overview = createRoute({ getParentRoute: () => dag, path: "/", component: lazyRouteComponent(() => import("./pages/dag/OverviewTab")) });
const grid = createRoute({ getParentRoute: () => dag, path: "/grid", component: GridTab });
const graph = createRoute({ getParentRoute: () => dag, path: "/graph", component: lazyRouteComponent(() => import("./pages/graph/GraphTab")) });
const dagRuns = createRoute({ getParentRoute: () => dag, path: "/runs", component: lazyRouteComponent(() => import("./pages/runs/DagRunsTab")) });
const calendar = createRoute({ getParentRoute: () => dag, path: "/calendar", component: lazyRouteComponent(() => import("./pages/dag/CalendarTab")) });
const code = createRoute({ getParentRoute: () => dag, path: "/code", component: lazyRouteComponent(() => import("./pages/dag/CodeTab")) });
const details = createRoute({ getParentRoute: () => dag, path: "/details", component: lazyRouteComponent(() => import("./pages/dag/DetailsTab")) });

const run = createRoute({ getParentRoute: () => shell, path: "/dags/$dagId/runs/$runId", component: lazyRouteComponent(() => import("./pages/run/RunPage")), errorComponent: MissingPage });
const runTasks = createRoute({ getParentRoute: () => run, path: "/", component: lazyRouteComponent(() => import("./pages/run/TasksTab")) });
const gantt = createRoute({ getParentRoute: () => run, path: "/gantt", component: lazyRouteComponent(() => import("./pages/gantt/GanttTab")) });
const runGraph = createRoute({ getParentRoute: () => run, path: "/graph", component: lazyRouteComponent(() => import("./pages/graph/RunGraphTab")) });
const runEvents = createRoute({ getParentRoute: () => run, path: "/events", component: lazyRouteComponent(() => import("./pages/run/EventsTab")) });
const runDetails = createRoute({ getParentRoute: () => run, path: "/details", component: lazyRouteComponent(() => import("./pages/run/DetailsTab")) });

// The map index, the try and the tab are parameters: ?map=3&try=2&tab=xcom
const task = createRoute({ getParentRoute: () => shell, path: "/dags/$dagId/runs/$runId/tasks/$taskId", component: lazyRouteComponent(() => import("./pages/task/TaskPage")), errorComponent: MissingPage });

const tree = root.addChildren([
  login,
  shell.addChildren([
    triage, dags, runs, approvals, assets, asset, pools, pool, admin, adminSection, elsewhere,
    dag.addChildren([overview, grid, graph, dagRuns, calendar, code, details]),
    run.addChildren([runTasks, gantt, runGraph, runEvents, runDetails]),
    task,
  ]),
]);

export const router = createRouter({ routeTree: tree, parseSearch, stringifySearch: searchText, defaultPreload: "intent", defaultPreloadStaleTime: 0 });

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
