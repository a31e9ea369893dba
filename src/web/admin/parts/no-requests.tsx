import type { ReactNode } from 'react';
import { Command } from '../../shared/problem.tsx';
import { firstRequest, useOverview } from '../model/overview.ts';

/** Nothing has happened yet: the command that makes something happen, with the addresses of this gateway. */
export function NoRequests(): ReactNode {
  const { data } = useOverview();
  const command = data === undefined ? undefined : firstRequest(data);
  return (
    <section className="panel">
      <p>There has been no request yet. It shows up here as soon as there is one.</p>
      {command === undefined ? null : (
        <>
          <p>For example:</p>
          <Command text={command} />
        </>
      )}
    </section>
  );
}
