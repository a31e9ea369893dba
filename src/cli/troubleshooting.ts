import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from '../core/package-root.ts';

/** A message in a table of docs/troubleshooting.md. */
interface Trouble {
  /** As a client or operator sees it, with `…` for what differs. */
  readonly message: string;
  /** The first cell: the message with its status, for example. */
  readonly shown: string;
  readonly cause: string;
  readonly fix: string;
}

/** What docs/troubleshooting.md says of a message, of which its tables have the beginning or a part. Empty if nothing. */
export function troubles(message: string): string[] {
  const found = troublesIn(guide()).filter((each) => matchesText(`…${each.message}…`, message));
  const longest = Math.max(...found.map((each) => each.message.length));
  return found
    .filter((each) => each.message.length === longest)
    .map(({ shown, cause, fix }) => `${shown}\n\nCause: ${cause}\nFix: ${fix}\n`);
}

/** The messages in the first cells of the tables. Names of settings and the like have no space. */
export function troublesIn(markdown: string): Trouble[] {
  return markdown.split('\n').flatMap((line) => {
    const [shown = '', cause = '', fix = ''] = plain(line).split(' | ');
    if (!shown.startsWith('| ')) return [];
    return [...shown.matchAll(/`([^`]* [^`]*)`/g)].map(([, message = '']) => ({
      message,
      shown: shown.slice(2),
      cause,
      fix: fix.replace(/ \|$/, ''),
    }));
  });
}

/** Without links. */
const plain = (markdown: string): string => markdown.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');

function guide(): string {
  try {
    return readFileSync(new URL('docs/troubleshooting.md', PACKAGE_ROOT), 'utf8');
  } catch {
    return '';
  }
}

/** Whether a message has this text, in which `…` is anything. Case does not matter. */
export function matchesText(text: string, message: string): boolean {
  const parts = text.toLowerCase().split('…');
  const [first = ''] = parts;
  const last = parts.at(-1) ?? '';
  const said = message.toLowerCase();
  if (parts.length === 1) return said === first;
  if (!said.startsWith(first) || !said.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = said.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at + last.length <= said.length;
}
