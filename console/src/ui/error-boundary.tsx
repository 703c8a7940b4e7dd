import { Component, type ReactNode } from "react";
import { Button } from "./button.js";
import { Page } from "./page.js";

interface ErrorBoundaryProps {
  readonly children: ReactNode;
}

/** Stands in place of a view that cannot be shown, such as one whose script is gone since the service was updated. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { readonly hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    if (!this.state.hasFailed) return this.props.children;
    return (
      <Page title="This page cannot be shown">
        <p>The console may have been updated since you opened it. Reload the page: nothing that you saved is lost.</p>
        <div className="actions">
          <Button look="main" onClick={() => location.reload()}>
            Reload
          </Button>
        </div>
      </Page>
    );
  }
}
