import { api, read } from "../../api/client";
import { live } from "../../api/query";

export const triageQuery = live(["triage"], ["triage"], (signal) => read(api.GET("/api/tradewind/v1/triage", { signal })));
