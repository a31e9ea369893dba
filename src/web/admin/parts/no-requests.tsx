import type { ReactNode } from 'react';
import { Command } from '../../shared/problem.tsx';
import { firstRequest, useOverview } from '../model/overview.ts';
import { useRequests } from '../model/requests.ts';

/** Shown before the first request: a command that sends one, with the addresses of this gateway, once it is known that there is none. */
export function NoRequests(): ReactNode {
  const { stream } = useRequests();
  const { data } = useOverview();
  if (stream.kind === 'connecting') return <p className="quiet">Loading …</p>;
  if (stream.kind === 'lost') return <p className="quiet">Requests appear here when the gateway answers.</p>;
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
