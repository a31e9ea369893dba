import type { useInput } from 'ink';

/** A key as the terminal sends it: a character or a name. */
export interface Key {
  readonly input: string;
  readonly name?:
    | 'up'
    | 'down'
    | 'left'
    | 'right'
    | 'pageUp'
    | 'pageDown'
    | 'home'
    | 'end'
    | 'tab'
    | 'enter'
    | 'escape'
    | 'backspace'
    | undefined;
}

/** How far keys move in a list or a text, in lines; a page has `page` of them. */
export const MOVES: Readonly<Record<string, (page: number) => number>> = {
  up: () => -1,
  k: () => -1,
  down: () => 1,
  j: () => 1,
  pageUp: (page) => -page,
  pageDown: (page) => page,
  home: () => -1_000_000,
  g: () => -1_000_000,
  end: () => 1_000_000,
  G: () => 1_000_000,
};

const LONGEST_FILTER = 60;

interface Filtered {
  readonly filter: string;
  readonly isTyping: boolean;
}

/** Applies a key to a filter that is being typed: Enter keeps it, Escape clears it. */
export function typeFilter<Ui extends Filtered>(ui: Ui, { input, name }: Key): Ui {
  if (name === 'enter') return { ...ui, isTyping: false };
  if (name === 'escape') return { ...ui, isTyping: false, filter: '' };
  if (name === 'backspace') return { ...ui, filter: ui.filter.slice(0, -1) };
  return name === undefined && ui.filter.length + input.length < LONGEST_FILTER
    ? { ...ui, filter: ui.filter + input }
    : ui;
}

type InkKey = Parameters<Parameters<typeof useInput>[0]>[1];

/** The keys of one read: fast typing or pasting arrives in one piece, with its tabs and line breaks. */
export function keysOf(input: string, key: InkKey): Key[] {
  const name = nameOf(key);
  if (name !== undefined || input.length < 2 || key.ctrl) return [{ input: key.ctrl ? '' : input, name }];
  return [...input].map((character) => {
    const known = NAMES[character];
    return known === undefined ? { input: character } : { input: '', name: known };
  });
}

const NAMES: Readonly<Record<string, Key['name']>> = { '\r': 'enter', '\n': 'enter', '\t': 'tab' };

function nameOf(key: InkKey): Key['name'] {
  if (key.upArrow) return 'up';
  if (key.downArrow) return 'down';
  if (key.leftArrow) return 'left';
  if (key.rightArrow) return 'right';
  if (key.pageUp) return 'pageUp';
  if (key.pageDown) return 'pageDown';
  if (key.home) return 'home';
  if (key.end) return 'end';
  if (key.tab) return 'tab';
  if (key.return) return 'enter';
  if (key.escape) return 'escape';
  return key.backspace || key.delete ? 'backspace' : undefined;
}
