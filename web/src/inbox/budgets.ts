// Budgets for models that are used up, or nearly so: somebody has to raise them, or to know.
import { queryOptions } from "@tanstack/react-query";
import { api, body, type Schemas } from "../api/client";

type Budget = Schemas["ModelBudgetView"];
const NEAR = 0.8;
export const MICRO = 1_000_000;

export const budgetsQuery = () =>
  queryOptions({ queryKey: ["budgets"] as const, refetchInterval: 60_000, queryFn: async ({ signal }) => (await body(api.GET("/api/v1/model-budgets", { signal }))).budgets });

/** Those that are used up or nearly so, the worst first. */
export function pressing(budgets: Budget[]): Budget[] {
  const used = (one: Budget) => one.spent / Math.max(1, one.monthly_limit);
  return budgets.filter((one) => used(one) >= NEAR).sort((a, b) => used(b) - used(a));
}
