import { type KeyboardEvent, type ReactNode, useCallback, useEffect, useId, useRef, useState } from 'react';
import type { Page } from './page.ts';
import { navigate } from './router.tsx';
import { chooseTheme, THEMES } from './theme.ts';
import './palette.css';
import './unseen.css';

/** Something to go to or to do. */
export interface Action {
  readonly title: string;
  /** What kind of thing it is, such as `Tool` or `Route`. */
  readonly kind: string;
  readonly run: () => void;
}

/** Actions of an application beside its pages, looked up whenever the palette opens. */
export type Actions = () => Promise<readonly Action[]>;

const SHOWN = 50;
const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Ctrl+K or Cmd+K: find a page, or anything that the application names, by typing a part of its name. */
export function Palette({
  pages,
  actions,
}: {
  readonly pages: readonly Page[];
  readonly actions: Actions;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  const [found, setFound] = useState<readonly Action[]>([]);
  const open = useCallback((): void => {
    if (dialog.current?.open === false) dialog.current.showModal();
    setOpen(true);
  }, []);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent): void => {
      if (
        event.key.toLowerCase() !== 'k' ||
        !(event.ctrlKey || event.metaKey) ||
        event.shiftKey ||
        event.altKey
      )
        return;
      event.preventDefault();
      open();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [open]);
  useEffect(() => {
    if (!isOpen) return;
    let isGone = false;
    // Pages can be opened even if the server does not answer.
    actions().then(
      (all) => isGone || setFound(all),
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [isOpen, actions]);
  return (
    <>
      <button type="button" className="find" onClick={open} aria-keyshortcuts="Control+K Meta+K">
        Find <kbd>{IS_MAC ? '⌘K' : 'Ctrl K'}</kbd>
      </button>
      {/* The event follows the closing in a task of its own: the dialog may be open again by then. */}
      <dialog
        ref={dialog}
        className="palette"
        aria-label="Find"
        onClose={({ currentTarget }) => setOpen(currentTarget.open)}
      >
        {isOpen ? (
          <Search
            all={[...ownActions(pages), ...found]}
            close={() => {
              dialog.current?.close();
              setOpen(false);
            }}
          />
        ) : null}
      </dialog>
    </>
  );
}

function ownActions(pages: readonly Page[]): Action[] {
  return [
    ...pages.map(({ title, path }) => ({ title, kind: 'Page', run: () => navigate(path) })),
    ...THEMES.map((theme) => ({ title: `Theme: ${theme}`, kind: 'Setting', run: () => chooseTheme(theme) })),
  ];
}

/** A combobox with a list box, as in the ARIA practices: the focus stays in the input. */
function Search({ all, close }: { readonly all: readonly Action[]; readonly close: () => void }): ReactNode {
  const id = useId();
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const matching = best(all, text);
  const chosen = Math.min(at, matching.length - 1);
  const run = ({ run: act }: Action): void => {
    close();
    act();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const to = { ArrowDown: chosen + 1, ArrowUp: chosen - 1 }[event.key];
    const action = matching[chosen];
    if (to !== undefined) setAt((to + matching.length) % Math.max(1, matching.length));
    else if (event.key === 'Enter' && action !== undefined) run(action);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <input
        // Not a search field: Escape would clear it first instead of closing the dialog.
        type="text"
        role="combobox"
        aria-label="Page, route, target, tool or model"
        placeholder="Page, route, target, tool or model"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={matching.length === 0 ? undefined : `${id}-${chosen}`}
        autoComplete="off"
        spellCheck={false}
        // biome-ignore lint/a11y/noAutofocus: the dialog was opened to type.
        autoFocus
        value={text}
        onKeyDown={onKeyDown}
        onChange={({ target }) => {
          setText(target.value);
          setAt(0);
        }}
      />
      <Results id={id} matching={matching} chosen={chosen} run={run} />
      <p role="status" className={matching.length === 0 ? 'quiet' : 'unseen'}>
        {matching.length === 0 ? 'Nothing has this name.' : `${matching.length} found`}
      </p>
    </>
  );
}

function Results({
  id,
  matching,
  chosen,
  run,
}: {
  readonly id: string;
  readonly matching: readonly Action[];
  readonly chosen: number;
  readonly run: (action: Action) => void;
}): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice may be out of sight.
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen, matching]);
  return (
    <div ref={list} role="listbox" id={`${id}-list`} aria-label="Found">
      {matching.map((action, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the input handles keys.
        // biome-ignore lint/a11y/useFocusableInteractive: the input keeps the focus and names the active option.
        <div
          key={`${action.kind} ${action.title}`}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === chosen}
          onClick={() => run(action)}
        >
          <span>{action.title}</span> <span className="quiet">{action.kind}</span>
        </div>
      ))}
    </div>
  );
}

/** Actions that contain every typed word, those that begin with the text first. */
function best(all: readonly Action[], text: string): readonly Action[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const rank = ({ title }: Action): number => (title.toLowerCase().startsWith(wanted) ? 0 : 1);
  return all
    .filter(({ title, kind }) => words.every((word) => `${title} ${kind}`.toLowerCase().includes(word)))
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, SHOWN);
}
