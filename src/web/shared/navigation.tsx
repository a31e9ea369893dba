import { type ReactNode, useEffect, useRef } from 'react';
import type { Page } from './page.ts';
import { Link } from './router.tsx';

/** Links to all pages, under the headings of their groups. */
export function Navigation({
  pages,
  current,
}: {
  readonly pages: readonly Page[];
  readonly current: Page | undefined;
}): ReactNode {
  const strip = useRef<HTMLElement>(null);
  // On a narrow screen the links are one strip that scrolls.
  useEffect(() => {
    if (current === undefined) return;
    strip.current
      ?.querySelector('[aria-current]')
      ?.scrollIntoView({ block: 'nearest', inline: 'center', behavior: 'instant' });
  }, [current]);
  return (
    <nav ref={strip} aria-label="Pages">
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
  );
}
