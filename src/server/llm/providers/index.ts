import { anthropic } from './anthropic.ts';
import { azure } from './azure.ts';
import { bedrock } from './bedrock.ts';
import { echo } from './echo/index.ts';
import { gemini } from './gemini.ts';
import { oaiCompat, presets } from './openai-compatible.ts';
import type { ProviderKind } from './provider.ts';
import { vertex } from './vertex.ts';

/** Every kind of provider. */
export const providerKinds: readonly ProviderKind[] = [
  oaiCompat,
  anthropic,
  gemini,
  vertex,
  bedrock,
  azure,
  echo,
  ...presets,
];

/** The provider kind with this name or alias, compared without case; undefined if there is none. */
export function findProvider(name: string): ProviderKind | undefined {
  const lower = name.toLowerCase();
  return providerKinds.find(({ key, aliases }) =>
    [key, ...aliases].some((known) => known.toLowerCase() === lower),
  );
}

/** Every accepted value of `provider:`, names and aliases. */
export const providerNames: readonly string[] = providerKinds.flatMap(({ key, aliases }) => [
  key,
  ...aliases,
]);

/** Why upstream's provider `copilot` does not exist here. */
export const NO_COPILOT = "GitHub documents no API for Copilot's models outside its own clients";
