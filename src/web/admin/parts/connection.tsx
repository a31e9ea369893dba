import type { ReactNode } from 'react';
import { LiveText } from '../../shared/live-text.tsx';
import { useRequests } from '../model/requests.ts';

/** Reports on every page when the gateway becomes unreachable, and when it responds again. */
export function Connection(): ReactNode {
  const { entries, stream, reopened } = useRequests();
  const lost = stream.kind === 'lost' ? stream : undefined;
  return (
    <>
      {lost === undefined ? null : (
        <div className="panel problem" data-state="lost">
          <p>
            <strong>✗ The gateway does not answer at {location.origin}.</strong>
            {entries.length === 0 ? '' : ' This is the last known state.'} Trying again every few seconds.
          </p>
          <p className="quiet">
            {lost.reason}
            {/[.?!]$/.test(lost.reason) ? '' : '.'} <code>agctl check</code> can diagnose the problem; or
            start the gateway: <code>agctl serve -f config.yaml</code>
          </p>
        </div>
      )}
      <LiveText text={words(lost !== undefined, reopened)} />
    </>
  );
}

function words(isLost: boolean, reopened: number): string {
  if (isLost) return 'The gateway does not answer. Trying again.';
  return reopened === 0 ? '' : 'The gateway answers again.';
}
