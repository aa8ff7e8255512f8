import "./base.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { I18nProvider } from "react-aria-components";

import { queries } from "./api/query";
import { setLanguage, useLanguage, wantedLanguage } from "./i18n";
import { readColours } from "./pages/grid/draw";
import { router } from "./router";
import "./shell/theme";

function App() {
  return (
    <I18nProvider locale={useLanguage()}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </I18nProvider>
  );
}

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no element with the id root.");
readColours();
await setLanguage(wantedLanguage(), false);
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
