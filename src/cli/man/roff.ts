/**
 * Writes manual pages with the few macros of man(7) that groff and mandoc both know. Arguments called `text` are
 * prose in which `backticks` mark what is typed literally; it is printed bold.
 */

// Typed characters must stay what they are when copied: unescaped, groff prints typographic dashes and quotes.
const LITERAL: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '"': '\\(dq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
};

/** Text that a reader may type or copy, escaped for any place in a page. */
export function literal(text: string): string {
  return ascii(text.replace(/[\\\-'"`^~]/g, (character) => LITERAL[character] as string));
}

/** What is typed literally, in bold. */
export function bold(text: string): string {
  return `\\fB${literal(text)}\\fR`;
}

/** Prose on one line; groff breaks it to the width of the terminal. */
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
  // A hyphen inside a word stays one, and lines may break there; any other belongs to an option.
  return text
    .split(/(?<=\w)-(?=\w)/)
    .map(literal)
    .join('-');
}

/** Pages are ASCII, so that they read the same whatever character set the reader's tools assume. */
function ascii(text: string): string {
  return text.replace(
    /[^\n -~]/gu,
    (character) => `\\[u${(character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')}]`,
  );
}

/** The first lines of a page. There is no date: the same sources must give the same bytes. */
export function title(name: string, section: number, summary: string): string[] {
  return [
    `.TH "${literal(name.toUpperCase())}" ${section} "" "agctl" "agctl manual"`,
    // Stretched lines look odd, and groff warns where a long path leaves it nothing to stretch.
    '.ad l',
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

/** A term with its explanation indented below, one line for each text. */
export function entry(term: string, ...texts: readonly string[]): string[] {
  return ['.TP', bold(term), ...texts.flatMap((text, index) => [...(index > 0 ? ['.br'] : []), prose(text)])];
}

/** Lines printed as they are, indented. */
export function verbatim(lines: readonly string[]): string[] {
  return ['.PP', '.RS 4', '.nf', ...lines.map((line) => protect(literal(line))), '.fi', '.RE'];
}

/** A dot at the start of a line would make it a request of roff. */
function protect(line: string): string {
  return line.startsWith('.') ? `\\&${line}` : line;
}

export function seeAlso(pages: readonly { readonly name: string; readonly section: number }[]): string[] {
  // `\%`: no hyphenation inside a name.
  const references = pages.map(({ name, section }) => `\\%${bold(name)}(${section})`);
  return [...heading('See also'), references.join(', ')];
}

/** The whole page as the text of its file. */
export function page(...parts: readonly (readonly string[])[]): string {
  return `${parts.flat().join('\n')}\n`;
}
