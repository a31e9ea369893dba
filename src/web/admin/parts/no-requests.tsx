import type { ReactNode } from 'react';
import { Command } from '../../shared/problem.tsx';
import { firstRequest, useOverview } from '../model/overview.ts';

/** Shown before the first request: a command that sends one, with the addresses of this gateway. */
export function NoRequests(): ReactNode {
  const { data } = useOverview();
  const command = data === undefined ? undefined : firstRequest(data);
  return (
    <section className="panel">
      <p>There has been no request yet. Requests appear here as soon as they arrive.</p>
      {command === undefined ? null : (
        <>
          <p>For example:</p>
          <Command text={command} />
        </>
      )}
    </section>
  );
}
