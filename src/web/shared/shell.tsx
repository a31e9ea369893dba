import { type ComponentType, type ReactNode, useEffect, useRef } from 'react';
import { Boundary } from './boundary.tsx';
import { Link } from './link.tsx';
import { useLocation } from './router.ts';
import { ShortcutList } from './shortcut-list.tsx';
import './theme.css';

/** A page: one file, and one entry in the list of its application. */
export interface Page {
  readonly path: string;
  readonly title: string;
  /** The letter that goes there after `g`. */
  readonly key: string;
  readonly Content: ComponentType;
}

/** Frame around every page: skip link, navigation, heading. Focus goes to the heading when the page changes. */
export function Shell({
  name,
  pages,
}: {
  readonly name: string;
  readonly pages: readonly Page[];
}): ReactNode {
  const { path } = useLocation();
  const page = pages.find((candidate) => candidate.path === path);
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  const title = page?.title ?? 'No such page';
  useEffect(() => {
    document.title = `${title} · ${name}`;
    // Not on the first one: a browser starts reading at the top by itself.
    if (first.current) first.current = false;
    else heading.current?.focus();
  }, [title, name]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header>
        <Link to="/" className="brand">
          {name}
        </Link>
        <nav aria-label="Pages">
          {pages.map((entry) => (
            <Link
              key={entry.path}
              to={entry.path}
              current={entry === page}
              title={`Keys: g, then ${entry.key}`}
            >
              {entry.title}
            </Link>
          ))}
        </nav>
        <ShortcutList pages={pages} />
      </header>
      <main id="main">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {page === undefined ? (
          <p>This address has no page. Choose one above.</p>
        ) : (
          <Boundary key={path}>
            <page.Content />
          </Boundary>
        )}
      </main>
    </>
  );
}
