import {
  Component,
  type ComponentType,
  Fragment,
  type ReactNode,
  StrictMode,
  useEffect,
  useRef,
  useState,
} from 'react';
import { createRoot } from 'react-dom/client';
import { contentOf, loadFirst, loadOthers, loadPage, type Page } from './page.ts';
import { type Actions, Palette } from './palette.tsx';
import { Problem } from './problem.tsx';
import { Link, useLocation } from './router.tsx';
import { ShortcutList } from './shortcuts.tsx';
import './shell.css';
import { chooseTheme, THEMES, type Theme, useTheme } from './theme.ts';

/** An application: its pages, and what it adds to the frame around them. */
interface Application {
  readonly name: string;
  readonly pages: readonly Page[];
  /** May ask for something before the pages are displayed. */
  readonly Gate?: ComponentType<{ readonly children: ReactNode }>;
  readonly Tools?: ComponentType<ToolsProps>;
  /** Displayed below the links to all pages: who uses them. */
  readonly Account?: ComponentType;
  /** Displayed above the content of every page. */
  readonly Banner?: ComponentType;
  /** What the command palette offers in addition to the pages. */
  readonly actions?: Actions;
}

/** Renders an application into its document. */
export async function start({ Gate = Fragment, ...application }: Application): Promise<void> {
  const root = document.getElementById('root');
  if (root === null) throw new Error('the document has no element for the application');
  await loadFirst(application.pages);
  createRoot(root).render(
    <StrictMode>
      <Gate>
        <Shell {...application} />
      </Gate>
    </StrictMode>,
  );
  loadOthers(application.pages);
}

/** What an application adds to the header of its pages. */
export interface ToolsProps {
  /** Displays the page anew, with other data. */
  readonly renew: () => void;
}

const Nothing = (): ReactNode => null;
const noActions: Actions = () => Promise.resolve([]);

/** Frame around every page: skip link, navigation, heading. The heading gets the focus when the page changes. */
function Shell({
  name,
  pages,
  Tools = Nothing,
  Banner = Nothing,
  Account = Nothing,
  actions = noActions,
}: Omit<Application, 'Gate'>): ReactNode {
  const { path } = useLocation();
  const page = pages.find((candidate) => candidate.path === path);
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  const [round, setRound] = useState(0);
  const title = page?.title ?? 'No such page';
  useEffect(() => {
    document.title = `${title} · ${name}`;
    // Not for the first page, where a browser starts reading at the top by itself.
    if (first.current) first.current = false;
    else heading.current?.focus();
  }, [title, name]);
  return (
    <>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="top">
        <Link to="/" className="brand">
          {name}
        </Link>
        <Palette pages={pages} actions={actions} />
        <Tools renew={() => setRound(round + 1)} />
        <Navigation pages={pages} current={page}>
          <Account />
        </Navigation>
        <ThemeSelect />
        <ShortcutList pages={pages} />
      </header>
      <main id="main">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        <Banner />
        {page === undefined ? (
          <p>This address has no page. Choose one above.</p>
        ) : (
          <Boundary key={`${path} ${round}`}>
            <Content page={page} />
          </Boundary>
        )}
      </main>
    </>
  );
}

/** The content of a page, loaded first if necessary. */
function Content({ page }: { readonly page: Page }): ReactNode {
  const [state, setState] = useState({ attempt: 0, error: undefined as Error | undefined });
  const Loaded = contentOf(page);
  const isMissing = Loaded === undefined;
  const { attempt, error } = state;
  useEffect(() => {
    if (!isMissing) return;
    loadPage(page).then(
      () => setState({ attempt, error: undefined }),
      (problem: Error) => setState({ attempt, error: problem }),
    );
  }, [page, isMissing, attempt]);
  if (Loaded !== undefined) return <Loaded />;
  if (error === undefined) return <p role="status">Loading…</p>;
  return (
    <Problem
      title="This page could not be loaded"
      error={new Error('The server does not answer, or has another version by now: reload the page.')}
      retry={() => setState({ attempt: attempt + 1, error: undefined })}
    />
  );
}

interface BoundaryProps {
  readonly children: ReactNode;
}

/** Replaces a failed page by a message and a button to try again; the frame around it stays. */
class Boundary extends Component<BoundaryProps, { readonly error: Error | undefined }> {
  override state = { error: undefined as Error | undefined };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <div role="alert" className="panel problem">
        <p>
          <strong>✗ This page has failed.</strong> The gateway is not affected. {error.message}
        </p>
        <button type="button" onClick={() => this.setState({ error: undefined })}>
          Try again
        </button>
      </div>
    );
  }
}

const NAMES: Readonly<Record<Theme, string>> = {
  system: 'System theme',
  light: 'Light theme',
  dark: 'Dark theme',
};

/** Light, dark, or what the system says. */
function ThemeSelect(): ReactNode {
  const theme = useTheme();
  return (
    <select
      className="theme"
      aria-label="Theme"
      title="Theme"
      value={theme}
      onChange={({ target }) => chooseTheme(THEMES.find((each) => each === target.value) ?? 'system')}
    >
      {THEMES.map((each) => (
        <option key={each} value={each}>
          {NAMES[each]}
        </option>
      ))}
    </select>
  );
}

/** Links to all pages, under the headings of their groups. On a narrow screen, a button opens them. */
function Navigation({
  pages,
  current,
  children,
}: {
  readonly pages: readonly Page[];
  readonly current: Page | undefined;
  readonly children: ReactNode;
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
        {children}
      </nav>
    </>
  );
}
