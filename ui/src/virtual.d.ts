/// <reference types="vite/client" />
declare module "virtual:messages/*" {
  import type { Messages } from "@lingui/core";
  export const messages: Messages;
  /** English templates of texts that the server stores or sends without a phrase. */
  export const templates: Record<string, string>;
}
declare module "elkjs/lib/elk.bundled.js" {
  export * from "elkjs/lib/elk-api";
  export { default } from "elkjs/lib/elk-api";
}
interface Window {
  /** Requests that boot.js started before the bundle arrived, by path and query. */
  tradewindFirst?: Record<string, Promise<Response>>;
}
