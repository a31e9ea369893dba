import type { HeaderList } from '../kernel/header-list.ts';

/** Shorter ones are no keys, and would turn up by chance in what a provider says. */
const SHORTEST = 6;

/** How a provider may spell the key that it got: as it is, in JSON, in a URL, in base64. */
export function keyForms(apiKey: string): readonly string[] {
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

/** Leaves out headers that hold the key, which is ours and not the client's. */
export function hideKeyInHeaders({ raw }: HeaderList, forms: readonly string[]): void {
  for (let at = raw.length - 1; at > 0; at -= 2) {
    const value = raw[at] as string;
    if (forms.some((form) => value.includes(form))) raw.splice(at - 1, 2);
  }
}

/** A body without the key. The same bytes when it does not hold it. */
export function hideKey(bytes: Buffer, forms: readonly string[]): Buffer {
  const text = bytes.toString('latin1');
  const cleaned = forms.reduce((current, form) => current.replaceAll(form, '<redacted>'), text);
  return cleaned === text ? bytes : Buffer.from(cleaned, 'latin1');
}
