import type { HeaderList } from '../kernel/header-list.ts';

/** Shorter values are not real keys and would occur in responses by chance. */
const SHORTEST = 6;

/** The encodings in which a provider may echo a key: plain, JSON, URL, base64. Empty for keys under 6 characters. */
export function keyEncodings(apiKey: string): readonly string[] {
  if (apiKey.length < SHORTEST) return [];
  return [
    ...new Set([
      apiKey,
      JSON.stringify(apiKey).slice(1, -1),
      Buffer.from(apiKey).toString('base64').replace(/=+$/, ''),
      Buffer.from(apiKey).toString('base64url'),
      encodeURIComponent(apiKey),
    ]),
  ];
}

/** Removes headers that contain the gateway's key. */
export function removeHeadersWithKey({ raw }: HeaderList, forms: readonly string[]): void {
  for (let at = raw.length - 1; at > 0; at -= 2) {
    const value = raw[at] as string;
    if (forms.some((form) => value.includes(form))) raw.splice(at - 1, 2);
  }
}

/** Redacts the key in a body. Returns the same buffer if the key does not occur. */
export function redactKey(bytes: Buffer, forms: readonly string[]): Buffer {
  const text = bytes.toString('latin1');
  const cleaned = forms.reduce((current, form) => current.replaceAll(form, '<redacted>'), text);
  return cleaned === text ? bytes : Buffer.from(cleaned, 'latin1');
}
