import type { z } from 'zod';
import { withScheme } from '../../kernel/url-scheme.ts';

/** Texts that are long enough for a name or an address. */
const LONGEST = 120;

/** Help for a text that would have the expected form after a small change. A private one is not repeated. */
export function correctionOf(
  { format, pattern }: z.core.$ZodIssueInvalidStringFormat,
  text: string,
  isPrivate: boolean,
): { readonly help: string } | undefined {
  if (text.length > LONGEST) return undefined;
  if (format === 'url') {
    const url = withScheme(text);
    const [scheme] = url?.match(/^\w+:\/\//) ?? [];
    if (scheme === undefined) return undefined;
    return { help: `add \`${scheme}\`${isPrivate ? '' : `: \`${url}\``}` };
  }
  // Something else than a name, such as a URL or a pattern, is not made one.
  if (format !== 'regex' || pattern === undefined || isPrivate || !/^[\w .+-]+$/.test(text)) return undefined;
  const [, source, flags] = /^\/(.*)\/(\w*)$/s.exec(pattern) ?? [];
  if (source === undefined) return undefined;
  const form = new RegExp(source, flags);
  const corrected = namesLike(text).find((name) => name !== '' && form.test(name));
  return corrected === undefined ? undefined : { help: `write \`${corrected}\`, for example` };
}

/** The text with a mark in place of characters that names seldom may have. */
function namesLike(text: string): string[] {
  return [text, text.toLowerCase()].flatMap((each) =>
    ['-', '_'].flatMap((mark) =>
      [/[^a-z0-9.-]+/gi, /[^a-z0-9]+/gi].map((others) =>
        each.replace(others, mark).replace(/^[._-]+|[._-]+$/g, ''),
      ),
    ),
  );
}
