/** Bytes of a page that are looked at, and characters of the excerpt. */
const READ_BYTES = 16_384;
const EXCERPT_LENGTH = 200;

/** What a page or another text says, on one line and without markup, for an error message. */
export function excerptOf(bytes: Buffer): string {
  const text = bytes.toString('utf8', 0, READ_BYTES);
  const words = /^\s*</.test(text) ? withoutMarkup(text) : text;
  const line = words.replace(/[\s\p{C}]+/gu, ' ').trim();
  return line.length > EXCERPT_LENGTH ? `${line.slice(0, EXCERPT_LENGTH)}…` : line;
}

/** Each pattern takes linear time: none can match in two ways. */
const withoutMarkup = (text: string): string =>
  text
    .split(/<(?=!--|head\b|script\b|style\b)/i)
    .map((part, index) => (index === 0 ? part : afterElement(part)))
    .join(' ')
    .replace(/<[^<>]*>?/g, ' ')
    .replace(/&(?:nbsp|#160);/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&#0?39;/g, "'")
    .replace(/&amp;/g, '&');

/** What follows an element without content for readers; of a head, its title. */
function afterElement(part: string): string {
  const [, name = ''] = /^(!--|\w+)/.exec(part) ?? [];
  const end = part.toLowerCase().indexOf(name === '!--' ? '-->' : `</${name.toLowerCase()}`);
  const title = /<title[^<>]*>([^<]*)/i.exec(part)?.[1] ?? '';
  return end === -1 ? title : `${title} <${part.slice(end + 2)}`;
}
