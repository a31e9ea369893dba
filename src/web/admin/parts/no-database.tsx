import type { ReactNode } from 'react';
import { Command } from '../../shared/problem.tsx';
import { Link } from '../../shared/router.tsx';

/** Shown where a page needs `config.database`: what to add to the configuration. */
export function NoDatabase({
  what,
  more = '',
}: {
  readonly what: string;
  /** Further YAML. */
  readonly more?: string;
}): ReactNode {
  return (
    <section className="panel">
      <p>{what} need a database. Add one to the configuration, and start the gateway again:</p>
      <Command text={`config:\n  database:\n    url: sqlite://./agctl.db${more === '' ? '' : `\n${more}`}`} />
      <p>
        <Link to="/config">Open the configuration</Link>
      </p>
    </section>
  );
}
