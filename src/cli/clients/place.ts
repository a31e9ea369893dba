import { join } from 'node:path';
import type { ClientFile, ClientSettings } from '../../core/clients/client.ts';
import type { Context } from '../context.ts';

/** Where the files of clients are looked for. */
export interface Place {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly cwd: string;
  readonly env: Context['env'];
}

/** Paths of the settings files of a client, in the order in which it reads them. */
export const filesOf = ({ files }: ClientSettings, place: Place): readonly string[] =>
  files.map(({ root, path }) => join(ROOTS[root](place), ...path.split('/')));

const xdg = ({ home, env }: Place): string => env['XDG_CONFIG_HOME'] || join(home, '.config');
const roaming = ({ home, env }: Place): string => env['APPDATA'] || join(home, 'AppData', 'Roaming');

const ROOTS: Readonly<Record<ClientFile['root'], (place: Place) => string>> = {
  home: ({ home }) => home,
  project: ({ cwd }) => cwd,
  applications: (place) =>
    place.platform === 'darwin'
      ? join(place.home, 'Library', 'Application Support')
      : place.platform === 'win32'
        ? roaming(place)
        : xdg(place),
  config: (place) => (place.platform === 'win32' ? roaming(place) : xdg(place)),
  codex: ({ home, env }) => env['CODEX_HOME'] || join(home, '.codex'),
};
