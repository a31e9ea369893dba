import { echo } from './echo.ts';
import { oaiCompat } from './oai-compat.ts';
import { presets } from './presets.ts';
import type { ProviderKind } from './provider.ts';

/** Every kind of provider by its name in `provider:`; aliases are names of their own. */
export const providerKinds: readonly ProviderKind[] = [oaiCompat, echo, ...presets];

/** The kind of that name or alias, without case. */
export function findProvider(name: string): ProviderKind | undefined {
  const lower = name.toLowerCase();
  return providerKinds.find(({ key, aliases }) =>
    [key, ...aliases].some((known) => known.toLowerCase() === lower),
  );
}

/** Every name that `provider:` may have, in one spelling each. */
export const providerNames: readonly string[] = providerKinds.flatMap(({ key, aliases }) => [
  key,
  ...aliases,
]);
