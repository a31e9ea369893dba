import type { ReactNode } from 'react';
import { visible } from '../../shared/visible.ts';
import type { Turn } from './chat.ts';

/** The messages of a conversation. */
export function Conversation({
  label,
  turns,
  isRunning,
}: {
  readonly label: string;
  readonly turns: readonly Turn[];
  readonly isRunning: boolean;
}): ReactNode {
  if (turns.length === 0) return <p className="quiet">No messages yet.</p>;
  return (
    <section
      role="log"
      className="panel chat"
      aria-label={label}
      aria-busy={isRunning}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it may scroll, so it must be reachable by keyboard.
      tabIndex={0}
    >
      {turns.map(({ role, content }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a turn is identified by its position.
        <div key={index} className={`turn ${role}`}>
          <strong>{role === 'user' ? 'You' : 'Model'}</strong>
          <pre>{visible(content)}</pre>
        </div>
      ))}
    </section>
  );
}
