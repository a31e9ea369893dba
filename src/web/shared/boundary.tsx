import { Component, type ReactNode } from 'react';

interface Props {
  readonly children: ReactNode;
}

/** A page that fails is named and can be tried again; the frame around it stays. */
export class Boundary extends Component<Props, { readonly error: Error | undefined }> {
  override state = { error: undefined as Error | undefined };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <div role="alert" className="panel problem">
        <p>
          <strong>✗ This page has failed.</strong> The gateway is not concerned. {error.message}
        </p>
        <button type="button" onClick={() => this.setState({ error: undefined })}>
          Try again
        </button>
      </div>
    );
  }
}
