import { X509Certificate } from 'node:crypto';
import type { RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import type { CompiledEntrance } from '../server/runtime/compile-entrance.ts';
import { entranceFor } from '../server/transport/listener/entrance.ts';

/** How the pages connect to a listener that ends TLS, or why they cannot. */
export type OwnTls = Pick<
  RequestOptions,
  'ca' | 'allowPartialTrustChain' | 'servername' | 'checkServerIdentity'
>;

/**
 * How to connect to a port of our own: undefined without TLS. The only certificate that is trusted is the one that the listener shows its
 * clients, whoever has issued it and for whatever names; or those that its own authority issues. `host` is what the request names.
 */
export function ownTls(
  entrances: readonly CompiledEntrance[],
  host: string | undefined,
): OwnTls | { readonly problem: string } | undefined {
  const name = host?.replace(/:\d+$/, '');
  const asked = name === undefined || isIP(name.replaceAll(/[[\]]/g, '')) > 0 ? undefined : name;
  const entrance = entranceFor(entrances, asked) ?? entrances.find(({ tls }) => tls !== undefined);
  if (entrance?.tls?.certificate === undefined) return undefined;
  const { certificate, options } = entrance.tls;
  if (options.requestCert === true)
    return {
      problem: `listener \`${entrance.name}\` asks its clients for a certificate (\`tls.root\`), and the pages have none: use a client with one, as with \`curl --cert\``,
    };
  // What an authority of the gateway issues is for a name.
  const isIssued = options.SNICallback !== undefined;
  return {
    ca: certificate,
    allowPartialTrustChain: true,
    servername: asked ?? exactName(entrance.hostname) ?? (isIssued ? 'localhost' : ''),
    ...(!isIssued && { checkServerIdentity: identityCheck(certificate) }),
  };
}

const exactName = (hostname: string | undefined): string | undefined =>
  hostname?.startsWith('*') === true ? hostname.replace('*', 'any') : hostname;

/** Accepts the first certificate of the file, whatever names it has. */
function identityCheck(pem: Buffer): NonNullable<OwnTls['checkServerIdentity']> {
  const own = new X509Certificate(pem);
  return (_host, shown) =>
    own.raw.equals(shown.raw)
      ? undefined
      : new Error('the port shows another certificate than the gateway has');
}
