import { structuredPatch } from 'diff';
import { isSecretVariable, isToken } from '../init/variables.ts';

/** The changed lines of a file, as `diff -U0` prints them. Secrets on these lines, which are not ours, are masked. */
export function shownDiff(path: string, before: string, after: string): string {
  const { hunks } = structuredPatch(path, path, before, after, '', '', { context: 0 });
  const lines = hunks.flatMap(({ oldStart, newStart, lines: changed }) => [
    `@@ -${oldStart} +${newStart} @@`,
    ...changed.filter((line) => !line.startsWith('\\')).map(masked),
  ]);
  return [`--- ${path}`, `+++ ${path}`, ...lines, ''].join('\n');
}

function masked(line: string): string {
  const [, name, value] = /^.(?:export )?([A-Za-z_]\w*)=(.*)$/.exec(line) ?? [];
  // A line of a file with variables.
  if (name !== undefined && value !== undefined && !/^<.*>$/.test(value) && isSecretVariable(name, value))
    return `${line.slice(0, -value.length)}****`;
  const members = line.replaceAll(
    /("?)([\w-]+)\1(\s*[:=]\s*)"((?:[^"\\]|\\.)*)"/g,
    (whole, quote, name, between, value) =>
      /\$\{|^<.*>$/.test(value) || ['type', 'url', 'httpUrl', 'serverUrl', 'command'].includes(name)
        ? isToken(value)
          ? `${quote}${name}${quote}${between}"****"`
          : whole
        : isSecretVariable(name, value)
          ? `${quote}${name}${quote}${between}"****"`
          : whole,
  );
  return members.replaceAll(/"((?:[^"\\]|\\.)*)"/g, (whole, value) => (isToken(value) ? '"****"' : whole));
}
