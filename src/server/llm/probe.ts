import type { ModelsProbe } from '../kernel/probe.ts';
import type { HeaderChanges } from '../kernel/request/header-changes.ts';
import { headerChanges } from '../kernel/request/header-changes.ts';
import { HeaderList } from '../kernel/request/header-list.ts';
import { addProviderHeaders, type ProviderKind } from './providers/provider.ts';

interface ProbedProvider {
  /** Name of the model or provider in the configuration. */
  readonly name: string;
  /** Undefined if it is unknown, which is reported elsewhere. */
  readonly kind: ProviderKind | undefined;
  /** Undefined: that of the kind. */
  readonly url: string | undefined;
  readonly key: string | undefined;
  readonly keyPath: ModelsProbe['keyPath'];
  /** Whether the provider gets another credential than `key`. */
  readonly hasCredential: boolean;
  readonly headers?: HeaderChanges | undefined;
  readonly settings: ModelsProbe['settings'];
}

/** Empty for a provider that the gateway answers itself, and for one whose address depends on further settings. */
export function probeOf({ kind, url: configured, headers: changes, ...rest }: ProbedProvider): ModelsProbe[] {
  const url = configured ?? kind?.baseUrl;
  if (kind === undefined || kind.answer !== undefined || url === undefined) return [];
  const headers = new HeaderList(['accept', 'application/json', 'accept-encoding', 'identity']);
  addProviderHeaders(headers, kind, rest.key, undefined);
  if (changes !== undefined) headerChanges(changes)(headers);
  return [
    {
      ...rest,
      kind: 'models',
      provider: kind.key,
      url: new URL(url),
      isConfigured: configured !== undefined,
      headers: headers.raw,
    },
  ];
}
