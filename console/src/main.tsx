// The entry of the console. `session/` knows who is signed in, `api/` calls the service, `ui/` has what pages are made of,
// `pages/` has a file for each view.
import { TransportProvider } from "@connectrpc/connect-query";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { queries, transport } from "./api/transport.js";
import { App } from "./app.js";
import { session } from "./session/session.js";

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no element for the application");

// The path is set before the first view is rendered.
void session.start().then((path) => {
  if (path !== undefined) history.replaceState(null, "", path);
  createRoot(root).render(
    <StrictMode>
      <TransportProvider transport={transport}>
        <QueryClientProvider client={queries}>
          <Router base="/console">
            <App />
          </Router>
        </QueryClientProvider>
      </TransportProvider>
    </StrictMode>,
  );
});
