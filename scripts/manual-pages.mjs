// Manual pages (man/) as Markdown, for the documentation as a site.

/** Escapes of roff that our manual pages use, besides `\[uXXXX]`. */
const ESCAPES = { '\\-': '-', '\\(dq': '"', '\\(aq': "'", '\\(ti': '~', '\\e': '\\', '\\&': '', '\\%': '' };

/** Text without escapes. */
const unescaped = (text) =>
  text.replace(/\\(?:\[u([\dA-F]+)\]|\((?:dq|aq|ti)|[-e&%])/g, (code, point) =>
    point === undefined ? ESCAPES[code] : String.fromCodePoint(Number.parseInt(point, 16)),
  );

/** Markdown and Vue interpret these characters. */
const quoted = (text) => text.replace(/[&<>{}[\]*_|`]/g, (character) => `&#${character.codePointAt(0)};`);

/** A line as Markdown: what is bold in the manual becomes code. */
const inline = (line) =>
  line
    .split(/(\\fB.*?\\fR)/)
    .map((part) =>
      part.startsWith('\\fB')
        ? `<code>${quoted(unescaped(part.slice(3, -3)))}</code>`
        : quoted(unescaped(part)),
    )
    .join('');

const sentenceCase = (title) => title.charAt(0) + title.slice(1).toLowerCase();

/** The page of a file: those of commands keep their names. */
export const manualPage = (file) => {
  const [, name, section] = /([\w-]+)\.(\d)$/.exec(file);
  return section === '1' ? name : name.replace('agctl-', '');
};

/** Converts the macros that our manual pages consist of. Throws at another one. */
export function manualPageToMarkdown(roff) {
  const lines = [];
  let isExample = false;
  let isTerm = false;
  for (const line of roff.split('\n')) {
    const [, macro, rest = ''] = /^\.(\w+) ?(.*)$/.exec(line) ?? [];
    if (macro === 'nf' || macro === 'fi') {
      lines.push('```');
      isExample = macro === 'nf';
    } else if (isExample) lines.push(unescaped(line));
    else if (macro === 'TH') lines.push(`# ${quoted(unescaped(rest.split('"')[1]).toLowerCase())}`, '');
    else if (macro === 'SH') lines.push('', `## ${sentenceCase(inline(rest))}`, '');
    else if (macro === 'SS') lines.push('', `### ${inline(rest)}`, '');
    else if (macro === 'br') lines.push('<br>');
    else if (macro === undefined) lines.push(isTerm ? `**${inline(line)}**<br>` : inline(line));
    else if (['PP', 'TP', 'RS', 'RE'].includes(macro)) lines.push('');
    else if (!['ad', 'nh'].includes(macro)) throw new Error(`a manual page has an unknown macro: ${line}`);
    isTerm = macro === 'TP';
  }
  return `${lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()}\n`;
}
