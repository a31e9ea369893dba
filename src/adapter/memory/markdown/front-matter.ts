import { parse } from 'yaml';

/** Maximum length; anything longer is text that happens to begin with a rule. */
const FRONT_MATTER = 64 * 1024;
const OPENING = /^(---|\+\+\+)[ \t]*\n/;

export interface FrontMatter {
  readonly title: string | undefined;
  readonly description: string | undefined;
  /** The text after the front matter. */
  readonly body: string;
}

function words(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = value.replace(/\s+/g, ' ').trim();
  return text === '' ? undefined : text;
}

/** Parses the metadata in front of a document's text. Front matter that is not valid YAML is ignored. */
export function frontMatter(text: string): FrontMatter {
  const none = { title: undefined, description: undefined, body: text };
  const opening = OPENING.exec(text);
  if (opening === null) return none;
  const [first, fence] = opening;
  const head = text.slice(first.length - 1, FRONT_MATTER);
  const end = head.indexOf(`\n${fence}`);
  if (end === -1) return none;
  const lineEnd = head.indexOf('\n', end + 1);
  const closing = head.slice(end + 1, lineEnd === -1 ? undefined : lineEnd);
  if (closing.trimEnd() !== fence) return none;
  const body = lineEnd === -1 ? '' : text.slice(first.length - 1 + lineEnd + 1);
  if (fence === '+++') return { ...none, body };
  try {
    const values: unknown = parse(head.slice(1, end + 1), { logLevel: 'silent', maxAliasCount: 20 });
    const { title, description } = (typeof values === 'object' ? (values ?? {}) : {}) as Record<
      string,
      unknown
    >;
    return { title: words(title), description: words(description), body };
  } catch {
    return { ...none, body };
  }
}
