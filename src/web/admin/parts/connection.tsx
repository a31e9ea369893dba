import type { ReactNode } from 'react';
import { LiveText } from '../../shared/live-text.tsx';
import { isRefused } from '../../shared/refusal.ts';
import { WithCode } from '../../shared/with-code.tsx';
import { type Requests, useRequests } from '../model/requests.ts';
import { useCaller } from './role.tsx';

/** Reports on every page when the gateway becomes unreachable or refuses its user, and when it responds again. */
export function Connection(): ReactNode {
  const { entries, stream, reopened } = useRequests();
  const lost = stream.kind === 'lost' ? stream : undefined;
  return (
    <>
      {lost === undefined ? null : <Lost lost={lost} isEmpty={entries.length === 0} />}
      <LiveText text={words(lost, reopened)} />
    </>
  );
}

type LostStream = Extract<Requests['stream'], { kind: 'lost' }>;

function Lost({ lost, isEmpty }: { readonly lost: LostStream; readonly isEmpty: boolean }): ReactNode {
  const { status, reason } = lost;
  const end = /[.?!]$/.test(reason) ? '' : '.';
  if (isRefused(status)) return <Refused lost={lost} />;
  return (
    <div className="panel problem" data-state="lost">
      <p>
        <strong>✗ The gateway does not answer at {location.origin}.</strong>
        {isEmpty ? '' : ' This is the last known state.'} Trying again every few seconds.
      </p>
      <p className="quiet">
        {reason}
        {end}{' '}
        {status === undefined ? (
          <>
            <code>agctl check</code> can diagnose the problem; or start the gateway:{' '}
            <code>agctl serve -f config.yaml</code>
          </>
        ) : null}
      </p>
    </div>
  );
}

function Refused({ lost: { status, reason } }: { readonly lost: LostStream }): ReactNode {
  const caller = useCaller();
  // The page itself says which role is missing.
  if (caller?.role === null) return null;
  return (
    <div className="panel problem" data-state="refused">
      <p>
        <strong>
          {status === 401 ? '✗ You are not signed in, or not any more.' : '✗ The gateway refuses.'}
        </strong>{' '}
        <WithCode text={reason} />
      </p>
      <button type="button" onClick={() => location.reload()}>
        {status === 401 ? 'Sign in again' : 'Try again'}
      </button>
    </div>
  );
}

function words(lost: LostStream | undefined, reopened: number): string {
  if (lost !== undefined)
    return isRefused(lost.status)
      ? 'The gateway refuses to show this.'
      : 'The gateway does not answer. Trying again.';
  return reopened === 0 ? '' : 'The gateway answers again.';
}
