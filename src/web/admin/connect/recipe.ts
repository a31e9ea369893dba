import { type ClientEndpoint, type ClientSettings, placeOf } from '../../../core/clients/client.ts';
import { settingText } from '../../../core/clients/setting-text.ts';

/** What a client is set up for. */
export interface Target extends ClientEndpoint {
  /** Name of the entry in the client's settings: letters, digits and hyphens. */
  readonly name: string;
  /** A model that can be asked; for models only. */
  readonly model: string;
}

/** How to set up one client. */
export interface Recipe {
  readonly client: string;
  /** Where the text belongs: a file, a terminal, a program. */
  readonly where: string;
  readonly text: string;
}

/** A client's own command if it has one, else its settings. */
export function recipeOf(client: ClientSettings, target: Target): Recipe {
  const command = client.command?.(target, target.name);
  return {
    client: client.title,
    where: command === undefined ? placeOf(client) : 'In a terminal',
    text: command ?? settingText(client, target, target.name),
  };
}

/** Environment variable that holds the key: a key in a file or in a shell's history is read by others. */
export const KEY = 'AGCTL_KEY';

/** A name for settings, from the name of a route. */
export const entryName = (text: string): string =>
  text
    .replace(/^.*\//, '')
    .replaceAll(/[^a-zA-Z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .toLowerCase() || 'agctl';
