import type { ReactNode } from 'react';
import { visible } from '../../shared/visible.ts';
import { roleText, useCaller } from './role.tsx';

/** Who is signed in, with which role, and the link that ends the session. Nothing where everybody may do everything. */
export function Account(): ReactNode {
  const caller = useCaller();
  if (caller === undefined) return null;
  const { actor, title, signOut, reason } = caller;
  const name = title ?? actor.name;
  if (name === undefined && reason === undefined) return null;
  return (
    <section className="account" aria-label="Account">
      <span className="who">{name === undefined ? 'Not signed in' : visible(name)}</span>
      <span className="quiet">role: {roleText(caller)}</span>
      {signOut === undefined ? null : <a href={signOut}>Sign out</a>}
    </section>
  );
}
