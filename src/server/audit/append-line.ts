import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** A named pipe that nobody reads would hold up the process, also at its end. */
const APPENDED = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;
const READ = constants.O_RDONLY | constants.O_NONBLOCK;

/**
 * Appends a line of text, or nothing if it is empty, to a file, which is created with mode 0600. The file is opened by its name: it may
 * have been rotated. If its last line has no end, because a process has crashed or a disk was full, that line is ended first.
 */
export async function appendLine(file: string, line: string): Promise<void> {
  const handle = await open(file, APPENDED, 0o600);
  try {
    if (line === '') return;
    await handle.appendFile(`${(await isCut(handle, file)) ? '\n' : ''}${line}\n`);
  } finally {
    await handle.close();
  }
}

/** Whether the last line of a file has no end; false if that cannot be read. */
async function isCut(handle: FileHandle, file: string): Promise<boolean> {
  const { size } = await handle.stat();
  // Pipes and devices have none.
  if (size === 0) return false;
  let reader: FileHandle | undefined;
  try {
    reader = await open(file, READ);
    const { buffer, bytesRead } = await reader.read(Buffer.alloc(1), 0, 1, size - 1);
    return bytesRead === 1 && buffer[0] !== NEWLINE;
  } catch {
    return false;
  } finally {
    await reader?.close();
  }
}

const NEWLINE = 0x0a;
