/**
 * Writes manual pages with the few macros of man(7) that both groff and mandoc support. Arguments named `text` are
 * prose; `backticks` in them mark literal input, which is printed in bold.
 */

// Typed characters must stay the same when copied: unescaped, groff prints typographic dashes and quotes.
const LITERAL: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '"': '\\(dq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
};

/** Escapes text that a reader may type or copy, for any place in a page. */
export function literal(text: string): string {
  return ascii(text.replace(/[\\\-'"`^~]/g, (character) => LITERAL[character] ?? character));
}

/** Literal input, in bold. */
export function bold(text: string): string {
  return `\\fB${literal(text)}\\fR`;
}

/** Prose on one line; groff wraps it to the width of the terminal. */
export function prose(text: string): string {
  const line = text
    .split('`')
    .map((part, index) => (index % 2 === 1 ? bold(part) : proseCharacters(part)))
    .join('')
    .replace(/\s+/g, ' ')
    .trim();
  return line.startsWith('.') ? `\\&${line}` : line;
}

function proseCharacters(text: string): string {
  // A hyphen inside a word is kept and allows a line break; any other hyphen belongs to an option.
  return text
    .split(/(?<=\w)-(?=\w)/)
    .map(literal)
    .join('-');
}

/** Pages are ASCII, so that they do not depend on the character set of the reader's tools. */
function ascii(text: string): string {
  return text.replace(
    /[^\n -~]/gu,
    (character) => `\\[u${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`,
  );
}

/** The first lines of a page. There is no date, so that the output is deterministic. */
export function title(name: string, section: number, summary: string): string[] {
  return [
    `.TH "${literal(name.toUpperCase())}" ${section} "" "agctl" "agctl manual"`,
    // Justified lines look odd, and groff warns if a long path prevents justification.
    '.ad l',
    // A hyphen at the end of a line would look like a part of the key or option that it divides.
    '.nh',
    ...heading('Name'),
    `${literal(name)} \\- ${prose(summary)}`,
  ];
}

export function heading(text: string): string[] {
  return [`.SH ${literal(text.toUpperCase())}`];
}

export function subheading(text: string): string[] {
  return [`.SS ${literal(text)}`];
}

export function paragraph(text: string): string[] {
  return ['.PP', prose(text)];
}

/** A term with its indented explanation, one line per text. */
export function entry(term: string, ...texts: readonly string[]): string[] {
  return ['.TP', bold(term), ...texts.flatMap((text, index) => [...(index > 0 ? ['.br'] : []), prose(text)])];
}

/** Preformatted lines, indented. */
export function verbatim(lines: readonly string[]): string[] {
  return ['.PP', '.RS 4', '.nf', ...lines.map((line) => protect(literal(line))), '.fi', '.RE'];
}

/** A dot at the start of a line would make it a roff request. */
function protect(line: string): string {
  return line.startsWith('.') ? `\\&${line}` : line;
}

export function seeAlso(pages: readonly { readonly name: string; readonly section: number }[]): string[] {
  // `\%`: no hyphenation inside a name.
  const references = pages.map(({ name, section }) => `\\%${bold(name)}(${section})`);
  return [...heading('See also'), references.join(', ')];
}

/** Joins the parts to the text of the page's file. */
export function page(...parts: readonly (readonly string[])[]): string {
  return `${parts.flat().join('\n')}\n`;
}
