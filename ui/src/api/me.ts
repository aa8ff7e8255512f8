// The account that is logged in, and what it may do.
import { queryOptions, useQuery } from "@tanstack/react-query";

import { t } from "../i18n";
import { api, read, type Schemas } from "./client";

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => read(api.GET("/api/tradewind/v1/me", { signal })),
  staleTime: Infinity,
  meta: { topics: ["triage"] },
});

export function useMe(): Schemas["Me"] | undefined {
  return useQuery(meQuery).data;
}

type Resource =
  | "account" | "asset" | "configuration" | "connection" | "dag" | "event_log" | "favorite" | "import_error" | "job" | "log" | "login" | "me" | "plugin" | "pool"
  | "provider" | "run" | "task_instance" | "variable";
export type Permission = `${"read" | "edit"}:${Resource}` | "create:run";

/** Why the account may not do something (`edit:dag`, `create:run`), or undefined: it may. For DAGs, the server makes the final decision. */
export function useRefusal(permission: Permission): string | undefined {
  const me = useMe();
  if (!me || me.permissions.includes(permission)) return undefined;
  const [action = "", resource = ""] = permission.split(":");
  return t("common.notAllowed", { role: me.role, action, resource });
}
