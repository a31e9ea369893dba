import { open, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { folderSource } from './folder-source.ts';
import { type ModelSource, refuseSource } from './model-source.ts';
import { tarSource } from './tar-source.ts';
import { zipSource } from './zip-source.ts';

/** A source, and what its path says about the model in it. */
export interface OpenedSource {
  readonly source: ModelSource;
  /** Where it is, for messages and the manifest. */
  readonly shown: string;
  /** Name of the folder or archive, without its ending. */
  readonly name: string;
  /** Set if the path was that of a model. */
  readonly file?: string;
}

/** What is read from the beginning of a file, to see what it is. */
const HEAD = 512;

/**
 * A folder, an ONNX file in one, or an archive, whatever its name: ZIP (`.zip`, `.jar`, `.whl`), tar (`.tar`, `.tgz`, `.tar.gz`).
 *
 * @throws AppError `bad_request` for anything else
 */
export async function openSource(path: string): Promise<OpenedSource> {
  const found = await stat(path).catch(() => refuseSource(path, 'no such file or folder'));
  if (found.isDirectory()) return { source: folderSource(path), shown: path, name: basename(path) };
  if (!found.isFile()) refuseSource(path, 'is neither a folder nor a file');
  if (path.endsWith('.onnx')) {
    const parent = dirname(path);
    const isInside = basename(parent) === 'onnx';
    const folder = isInside ? dirname(parent) : parent;
    const file = isInside ? `onnx/${basename(path)}` : basename(path);
    return { source: folderSource(folder), shown: path, name: basename(folder), file };
  }
  const head = await headOf(path);
  const name = basename(path).replace(/\.(?:zip|jar|whl|tgz|tar|tar\.gz)$/i, '');
  if (head.readUInt32BE(0) === 0x50_4b_03_04) return { source: zipSource(path), shown: path, name };
  const isGzip = head.readUInt16BE(0) === 0x1f8b;
  if (isGzip || head.toString('latin1', 257, 262) === 'ustar')
    return { source: tarSource(path, isGzip), shown: path, name };
  refuseSource(
    path,
    'is neither a folder nor an ONNX file nor an archive (.zip, .jar, .whl, .tar, .tgz, .tar.gz)',
  );
}

async function headOf(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const head = Buffer.alloc(HEAD);
    await file.read(head, 0, HEAD, 0);
    return head;
  } finally {
    await file.close();
  }
}
