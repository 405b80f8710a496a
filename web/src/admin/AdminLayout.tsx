import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { meQuery } from "../api/queries";
import { useText } from "../text";
import { ADMIN_PAGES, adminTitle } from "./pages";
import { Empty, PageHeader } from "../ui/basics";
import { TabBar } from "../ui/tabBar";

export function AdminLayout() {
  const t = useText();
  const me = useQuery(meQuery()).data;
  const path = useRouterState({ select: (state) => state.location.pathname });
  if (me && !me.actions.includes("admin")) return <Empty title={t.errors.forbidden}>{t.admin.notAdmin}</Empty>;
  return (
    <>
      <PageHeader title={t.nav.admin} />
      <TabBar label={t.nav.admin} open={path} className="border-b">
        {ADMIN_PAGES.map((page) => (
          <Link key={page} to={`/admin/${page}`} className="-mb-px border-b-2 border-transparent px-2 py-2 text-sm whitespace-nowrap text-muted hover:text-text" activeProps={{ className: "!border-text !text-text font-medium", "aria-current": "page" }}>
            {adminTitle(t, page)}
          </Link>
        ))}
      </TabBar>
      <div className="min-h-0 flex-1 overflow-auto"><Outlet /></div>
    </>
  );
}
