import { type ReactNode, useEffect, useState } from 'react';
import type { Page } from './page.ts';
import { Link } from './router.tsx';

/** Links to all pages, under the headings of their groups. On a narrow screen, a button opens them. */
export function Navigation({
  pages,
  current,
}: {
  readonly pages: readonly Page[];
  readonly current: Page | undefined;
}): ReactNode {
  const [isOpen, setOpen] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: closes when another page is shown.
  useEffect(() => setOpen(false), [current]);
  return (
    <>
      <button
        type="button"
        className="menu"
        aria-label="Pages"
        aria-expanded={isOpen}
        aria-controls="pages"
        onClick={() => setOpen(!isOpen)}
      >
        <span aria-hidden="true">☰</span> <span className="word">Pages</span>
      </button>
      <nav id="pages" className={isOpen ? 'open' : undefined} aria-label="Pages">
        {[...Map.groupBy(pages, ({ group = '' }) => group)].map(([group, own]) => (
          <div key={group}>
            {group === '' ? null : <p className="group">{group}</p>}
            <ul>
              {own.map((page) => (
                <li key={page.path}>
                  <Link to={page.path} current={page === current} title={`Keys: g, then ${page.key}`}>
                    {page.title}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
    </>
  );
}
