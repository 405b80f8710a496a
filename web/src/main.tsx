import "./styles.css";
import { QueryCache, QueryClient, QueryClientProvider, MutationCache } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/client";
import { keys, meQuery } from "./api/queries";
import { live } from "./live/hooks";
import { createAppRouter } from "./router";
import { handleKey } from "./shell/keyboard";
import { applyTheme } from "./shell/theme";
import { preferredLanguage, setLanguage } from "./text";

// Style sheets made at run time (the editor's, and what keeps a page still under a dialog) need the answer's nonce.
const nonce = document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content;
if (nonce) setNonce(nonce);

function onError(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) client.setQueryData(keys.me, null);
}

const client = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      retry: (count, error) => count < 3 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
    },
  },
});
live().onRefused = onError;

void client.prefetchQuery(meQuery()); // asked while the code of the page is still on the way

applyTheme();
window.addEventListener("keydown", handleKey);
await setLanguage(preferredLanguage());

const root = document.getElementById("root");
if (!root) throw new Error("The page has no root.");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={createAppRouter(client)} />
    </QueryClientProvider>
  </StrictMode>,
);
