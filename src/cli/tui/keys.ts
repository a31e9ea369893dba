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
