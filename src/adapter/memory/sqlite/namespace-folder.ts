import { join } from 'node:path';
import { DEFAULT_NAMESPACE, isNamespace } from '../../namespace.ts';

/** Folder with one folder per namespace, next to the file of `default`. */
export const NAMESPACES_FOLDER = 'namespaces';
export const DATABASE_FILE = 'memory.db';

/** Device names of Windows, which no file may have there. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)$/;

/**
 * The folder name of a namespace. Everything but lower-case letters, digits, `-` and `_` is percent-encoded, so that
 * no name leaves the folder or is special to a file system, and names that differ in case differ on every one.
 */
export function folderName(namespace: string): string {
  if (!isNamespace(namespace)) throw new RangeError('not the name of a namespace');
  const encoded = namespace.replace(/[^a-z0-9_-]/g, percentEncoded);
  return RESERVED.test(encoded) ? percentEncoded(encoded.charAt(0)) + encoded.slice(1) : encoded;
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
}

/** The namespace of a folder, or undefined if the folder is not one of ours. */
export function namespaceOfFolder(folder: string): string | undefined {
  const name = folder.replace(/%([0-9a-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return isNamespace(name) && name !== DEFAULT_NAMESPACE && folderName(name) === folder ? name : undefined;
}

/** @param folder of the store, with the file of `default` */
export function namespaceFolder(folder: string, namespace: string): string {
  return join(folder, NAMESPACES_FOLDER, folderName(namespace));
}
