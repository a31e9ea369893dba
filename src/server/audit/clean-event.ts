import { byForm } from '../../core/redact.ts';
import type { AuditEvent } from './event.ts';

/** Characters of a name and of the other texts; longer ones are cut. */
const NAME = 256;
const TEXT = 1024;

/** An event whose texts, which callers choose, are short, without credentials, and can be stored in any database. */
export function cleanEvent({ actor, from, ...event }: AuditEvent): AuditEvent {
  return {
    ...event,
    actor: { ...actor, name: clean(actor.name, NAME), issuer: clean(actor.issuer, NAME) },
    from: from && { address: clean(from.address, NAME) ?? '', proxy: clean(from.proxy, NAME) },
    target: clean(event.target, TEXT),
    detail: clean(event.detail, TEXT),
  };
}

function clean(text: string | undefined, length: number): string | undefined {
  if (text === undefined) return undefined;
  const cut = text.length > length ? `${text.slice(0, length)}…` : text;
  // PostgreSQL stores neither NUL nor half of a surrogate pair.
  const storable = cut.replaceAll('\0', '\\0').toWellFormed();
  return byForm.text(storable);
}
