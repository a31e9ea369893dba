/**
 * Makes text from untrusted sources safe to display: characters that are invisible, or change how the rest is
 * displayed, are replaced by visible symbols. Line breaks and tabs are kept. React renders the result as text, never as
 * markup.
 */
export function visible(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(UNSEEN, (sign) => {
    const code = sign.codePointAt(0) ?? 0;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code === 0x7f) return '␡';
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}

/** C0 without tab and line feed, DEL, C1, direction marks and overrides, invisible operators, tags, lone surrogates. */
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern searches for them.
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\p{Cs}]/gu;
