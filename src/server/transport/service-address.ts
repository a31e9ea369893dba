import type { CompileContext } from '../kernel/compile-context.ts';
import type { UpstreamAddress } from './upstream.ts';

/**
 * Parses the address of an HTTP service: `host:port`, a URL without a path, or `unix:/path/of/socket`. Reports a problem
 * and returns undefined for any other text.
 */
export function parseAddress(text: string, context: CompileContext): UpstreamAddress | undefined {
  if (text.startsWith('unix:')) {
    const socketPath = text.slice('unix:'.length).replace(/^\/\//, '');
    // sun_path has 108 bytes including the terminating NUL on Linux, 104 on macOS.
    if (socketPath.startsWith('/') && socketPath.length < 104)
      return { origin: 'http://localhost', socketPath };
    context.report({
      code: 'AGW0104',
      message: `\`${text}\` is not a socket path`,
      help: 'write `unix:/path/of/socket`, below 104 characters',
    });
    return undefined;
  }
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https') {
    context.report({ code: 'AGW0104', message: `invalid scheme: \`${scheme}\``, help: 'use http or https' });
    return undefined;
  }
  if (text.includes('@')) {
    // The text is not quoted, because it may contain a password.
    context.report({
      code: 'AGW0104',
      message: 'credentials in an address are not supported',
      help: 'remove `user:password@`',
    });
    return undefined;
  }
  const url = /^https?:\/\//.test(text) ? text : `http://${text}`;
  const isUrl = url === text;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const hasPort = isUrl || /:\d+$/.test(text);
  if (parsed === undefined || !hasPort || parsed.username !== '' || parsed.password !== '') {
    context.report({
      code: 'AGW0104',
      message: `\`${text}\` is not the address of a service`,
      help: 'write `host:port`, `https://host` or `unix:/path`',
    });
    return undefined;
  }
  if (parsed.pathname !== '/' || parsed.search !== '' || parsed.hash !== '') {
    context.report({
      code: 'AGW0104',
      message: 'the address must not have a path',
      label: `keep \`${parsed.origin}\``,
    });
    return undefined;
  }
  return { origin: parsed.origin };
}
