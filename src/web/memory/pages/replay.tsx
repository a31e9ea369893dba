import type { ReactNode } from 'react';
import { useLocation } from '../../shared/router.ts';
import { SessionPlayer } from '../replay/session-player.tsx';
import { Sessions } from '../replay/sessions.tsx';

/** Conversations of agents and users, by session, turn by turn. */
export function Replay(): ReactNode {
  const { query } = useLocation();
  const session = query.get('session') ?? '';
  return (
    <div className={session === '' ? '' : 'split sidebar'}>
      <Sessions open={session} />
      {session === '' ? null : <SessionPlayer key={session} session={session} />}
    </div>
  );
}
