import type { ModelsProbe, UncheckedProbe } from '../kernel/probe.ts';
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

/** How a provider is tried; empty for one of an unknown kind. */
export function probeOf(probed: ProbedProvider): (ModelsProbe | UncheckedProbe)[] {
  const { kind, url: configured, headers: changes, ...rest } = probed;
  if (kind === undefined) return [];
  const unchecked = { kind: 'models', url: undefined, name: rest.name, provider: kind.key } as const;
  if (kind.answer !== undefined) return [{ ...unchecked, reason: 'the gateway answers itself' }];
  const url = configured ?? kind.baseUrl;
  // The address depends on further settings, and that of its list of models is another one than that of calls.
  if (url === undefined) return [{ ...unchecked, reason: 'a call shows whether it answers' }];
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
