// A run by its id, as commits name it: leads to the message of the conversation that started it.
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Navigate } from "@tanstack/react-router";
import { api, body } from "../api/client";
import { Problem, Skeleton } from "../ui/basics";

const route = getRouteApi("/sessions/run/$run");

export function RunPage() {
  const { run } = route.useParams();
  const found = useQuery({ queryKey: ["run", run], queryFn: ({ signal }) => body(api.GET("/api/v1/runs/{run}", { params: { path: { run } }, signal })) });
  if (found.error) return <Problem error={found.error} />;
  if (!found.data) return <Skeleton lines={6} />;
  return <Navigate to="/sessions/$session" params={{ session: found.data.session_id }} search={{ message: run }} replace />;
}
