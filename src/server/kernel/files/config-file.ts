import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

/**
 * The absolute path of a file that a configuration names: relative to the folder of the configuration, or, if there is no
 * such file, to the working folder of the process, where upstream looks for it.
 */
export function resolveConfigFile(folder: string, path: string): string {
  const places = placesOf(folder, path);
  return places.find((place) => existsSync(place)) ?? resolve(folder, path);
}

/** Names the places where a file was looked for; undefined if there is one. */
export function missingConfigFile(folder: string, path: string): string | undefined {
  const places = placesOf(folder, path);
  return places.some((place) => existsSync(place)) ? undefined : `file not found: ${places.join(', and ')}`;
}

function placesOf(folder: string, path: string): string[] {
  return [...new Set([resolve(folder, path), resolve(path)])];
}
