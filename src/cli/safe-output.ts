import { StringDecoder } from 'node:string_decoder';
import { CONTROLS } from '../core/log.ts';
import { type Context, wantsColor } from './context.ts';

type Output = Context['stdout'];

/** What `styleText` writes for the styles of this program: bold, colors, and their ends. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the beginning of these sequences.
const STYLE = /(\u001b\[(?:1|22|3[1-6]|39|90)m)/;

/**
 * The context with streams on which no text controls a terminal: files, other servers and the command line have names and
 * texts that messages repeat, and not every message can be trusted to have escaped them. Control characters other than
 * line breaks and tabs, and those that change the direction of text, become `\u001b`: JSON is then the same value.
 * Styles of this program stay if it uses color on that stream.
 */
export function withSafeOutput(context: Context, color: string): Context {
  const safe = (stream: Output): Output => {
    const raw = rawOutput(stream);
    return safeStream(raw, wantsColor(raw, color, context.env));
  };
  return { ...context, stdout: safe(context.stdout), stderr: safe(context.stderr) };
}

/** The stream below, for what draws on a terminal and has escaped all text itself. */
export const rawOutput = (stream: Output): Output => RAW.get(stream) ?? stream;

/** For text that a program reads as it is, such as YAML: a terminal still gets no control characters. */
export const dataOutput = (stream: Output): Output => (stream.isTTY === true ? stream : rawOutput(stream));

const RAW = new WeakMap<Output, Output>();

function safeStream(raw: Output, hasStyle: boolean): Output {
  // A character may be split between two chunks of bytes.
  const decoder = new StringDecoder('utf8');
  const safe = new Proxy(raw, {
    get(target, name) {
      if (name === 'write')
        return (chunk: string | Uint8Array, ...rest: []) =>
          target.write(
            safeText(typeof chunk === 'string' ? chunk : decoder.write(Buffer.from(chunk)), hasStyle),
            ...rest,
          );
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  RAW.set(safe, raw);
  return safe;
}

/** A text that changes nothing on a terminal but what is printed. */
function safeText(text: string, hasStyle: boolean): string {
  // With a group, `split` also returns what separates: every second part is a style.
  if (hasStyle && text.includes('\u001b'))
    return text
      .split(STYLE)
      .map((part, index) => (index % 2 === 1 ? part : escaped(part)))
      .join('');
  return escaped(text);
}

/** A carriage return stays in the line ends of CSV (RFC 4180): alone it would overwrite its line. */
const escaped = (text: string): string =>
  text.replace(CONTROLS, (character, at: number) =>
    character === '\n' || character === '\t' || text.startsWith('\r\n', at)
      ? character
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
