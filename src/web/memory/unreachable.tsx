import type { ReactNode } from 'react';
import { Problem } from '../shared/problem.tsx';

/** A failed request to the backend: what was requested, what happened, what to do next. */
export function Unreachable({
  error,
  retry,
}: {
  readonly error: Error & { readonly status?: number };
  readonly retry: () => void;
}): ReactNode {
  if (error.status === 401)
    return <Problem title="The key was refused" error={error} retry={() => location.reload()} />;
  if (error.status !== undefined)
    return <Problem title="The memory backend refused the request" error={error} retry={retry} />;
  return (
    <Problem
      title={`The memory backend at ${location.origin} does not answer`}
      error={error}
      command={`curl -i ${location.origin}/health\nagctl memory-backend serve${location.port === '' ? '' : ` --port ${location.port}`}`}
      retry={retry}
    />
  );
}
