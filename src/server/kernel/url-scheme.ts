import { isLoopbackHost } from '../../core/dns-rebinding.ts';

/**
 * An address without a scheme, such as `api.example.com/v1`, as the URL that was meant: https, or http for this machine. Undefined for
 * a text that is none, has a scheme, or may contain a password.
 */
export function withScheme(text: string): string | undefined {
  if (/^[a-z][a-z0-9+.-]*:\/\/|[\s@\\]|^[/:?#]/i.test(text) || !/^[^/]*[.:]|^localhost\b/.test(text))
    return undefined;
  const url = URL.canParse(`https://${text}`) ? new URL(`https://${text}`) : undefined;
  if (url === undefined) return undefined;
  return `${isLoopbackHost(url.hostname) ? 'http' : 'https'}://${text}`;
}
