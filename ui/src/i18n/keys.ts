// The keys of all messages: one file of messages for each area of the page, `messages/en/<area>.json`.
import type actions from "../../messages/en/actions.json";
import type admin from "../../messages/en/admin.json";
import type approvals from "../../messages/en/approvals.json";
import type assets from "../../messages/en/assets.json";
import type calendar from "../../messages/en/calendar.json";
import type code from "../../messages/en/code.json";
import type common from "../../messages/en/common.json";
import type dag from "../../messages/en/dag.json";
import type dags from "../../messages/en/dags.json";
import type details from "../../messages/en/details.json";
import type gantt from "../../messages/en/gantt.json";
import type graph from "../../messages/en/graph.json";
import type grid from "../../messages/en/grid.json";
import type login from "../../messages/en/login.json";
import type overview from "../../messages/en/overview.json";
import type pools from "../../messages/en/pools.json";
import type refused from "../../messages/en/refused.json";
import type run from "../../messages/en/run.json";
import type runs from "../../messages/en/runs.json";
import type shell from "../../messages/en/shell.json";
import type state from "../../messages/en/state.json";
import type task from "../../messages/en/task.json";
import type triage from "../../messages/en/triage.json";
import type why from "../../messages/en/why.json";

interface Areas {
  actions: typeof actions;
  admin: typeof admin;
  approvals: typeof approvals;
  assets: typeof assets;
  calendar: typeof calendar;
  code: typeof code;
  common: typeof common;
  dag: typeof dag;
  dags: typeof dags;
  details: typeof details;
  gantt: typeof gantt;
  graph: typeof graph;
  grid: typeof grid;
  login: typeof login;
  overview: typeof overview;
  pools: typeof pools;
  refused: typeof refused;
  run: typeof run;
  runs: typeof runs;
  shell: typeof shell;
  state: typeof state;
  task: typeof task;
  triage: typeof triage;
  why: typeof why;
}

export type MessageKey = { [Area in keyof Areas]: `${Area}.${Extract<keyof Areas[Area], string>}` }[keyof Areas];
