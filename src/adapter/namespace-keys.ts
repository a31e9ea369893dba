import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { parse, YAMLParseError } from 'yaml';
import { AppError, messageOf } from '../core/errors.ts';
import { errorCode } from '../core/foreign.ts';
import type { Log } from '../core/log.ts';
import { MEMORY_API_LIMITS } from '../core/memory-limits.ts';
import { isNamespace, NAMESPACE_FORM } from './namespace.ts';

/** The keys of namespaces, from a file. */
export interface NamespaceKeys {
  /** The namespace of a bearer token, or undefined for a token that belongs to none. */
  namespaceOf(token: string): string | undefined;
  /** Whether a key belongs to the namespace. */
  has(namespace: string): boolean;
}

const VARIABLE = 'MEMORY_NAMESPACE_KEYS';
const HASH = /^sha256:([0-9a-f]{64})$/;

/**
 * Reads a YAML or JSON file such as `alice: [key, "sha256:…"]`: for each namespace one key or several, in plain text or
 * as SHA-256 hash. A changed file is read again within `keysMaxAge`; while it is invalid, the keys of before are used.
 *
 * @param others keys for other purposes, which may not be in the file
 * @throws AppError `bad_request` that names the file, the member and the problem, never a key
 */
export function namespaceKeysFrom(path: string, others: readonly string[], log: Log): NamespaceKeys {
  const read = (): ReadonlyMap<string, string> => parsed(path, new Set(others.map(hash)));
  let version = versionOf(path);
  let keys = read();
  let checkedAt = performance.now();
  const readIfChanged = (): void => {
    checkedAt = performance.now();
    const current = versionOf(path);
    if (current === version) return;
    version = current;
    try {
      keys = read();
      log.info('memory::keys', 'namespace keys were read again', { path, keys: keys.size });
    } catch (error) {
      log.error('memory::keys', 'the changed namespace keys are not used', { problem: messageOf(error) });
    }
  };
  const result: NamespaceKeys = {
    has: (namespace) => [...keys.values()].includes(namespace),
    namespaceOf(token) {
      if (performance.now() - checkedAt >= MEMORY_API_LIMITS.keysMaxAge) readIfChanged();
      // The lookup of a digest takes no longer for a token that resembles a key.
      return keys.get(hash(token));
    },
  };
  whileUsed(result, readIfChanged);
  return result;
}

/** Reads a changed file also if nobody calls, so that a mistake is logged when it is made. Ends with the keys. */
function whileUsed(keys: NamespaceKeys, check: () => void): void {
  const owner = new WeakRef(keys);
  const timer = setInterval(() => {
    if (owner.deref() === undefined) clearInterval(timer);
    else check();
  }, MEMORY_API_LIMITS.keysMaxAge);
  timer.unref();
}

/** Changes with the file: its time, size and inode, because editors and Kubernetes replace files. */
function versionOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? 'missing' : `${stat.mtimeMs} ${stat.size} ${stat.ino}`;
}

function parsed(path: string, others: ReadonlySet<string>): ReadonlyMap<string, string> {
  const wrong = (problem: string): AppError =>
    new AppError('bad_request', { message: `${VARIABLE}: ${path}: ${problem}` });
  const content = contentOf(path, wrong);
  if (content === null || typeof content !== 'object' || Array.isArray(content))
    throw wrong('expected an object with one member per namespace, such as `alice: sha256:…`');
  const keys = new Map<string, string>();
  for (const [namespace, listed] of Object.entries(content)) {
    const at = JSON.stringify(namespace.slice(0, 100));
    if (!isNamespace(namespace)) throw wrong(`${at}: the name of a namespace has ${NAMESPACE_FORM}`);
    const list: unknown[] = Array.isArray(listed) ? listed : [listed];
    if (list.length === 0) throw wrong(`${at}: expected a key or a list of keys`);
    for (const key of list) {
      const digest = digestOf(key);
      if (digest === undefined)
        throw wrong(
          `${at}: expected a key of printable ASCII characters without spaces, as text, or \`sha256:\` and 64 ` +
            'lower-case hexadecimal digits',
        );
      if (others.has(digest)) throw wrong(`${at}: the key is also MEMORY_API_KEY or MEMORY_ADAPTER_KEY`);
      const owner = keys.get(digest);
      if (owner !== undefined && owner !== namespace)
        throw wrong(`${at}: the key is also that of ${JSON.stringify(owner)}`);
      keys.set(digest, namespace);
      if (keys.size > MEMORY_API_LIMITS.namespaceKeys)
        throw wrong(`more than ${MEMORY_API_LIMITS.namespaceKeys} keys: let the gateway check keys instead`);
    }
  }
  return keys;
}

function contentOf(path: string, wrong: (problem: string) => AppError): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw wrong(`cannot be read (${errorCode(error) || 'unknown error'})`);
  }
  try {
    return parse(text, { maxAliasCount: 0, prettyErrors: false });
  } catch (error) {
    // The text of the error could quote the line with a key.
    const [place] = error instanceof YAMLParseError ? (error.linePos ?? []) : [];
    throw wrong(`is not valid YAML or JSON${place === undefined ? '' : ` (line ${place.line})`}`);
  }
}

function digestOf(key: unknown): string | undefined {
  if (typeof key !== 'string') return undefined;
  const [, digest] = HASH.exec(key) ?? [];
  if (digest !== undefined) return digest;
  // Probably a hash with a typing error, and certainly no key that anybody sends.
  if (key.startsWith('sha256:')) return undefined;
  return /^[\x21-\x7e]+$/.test(key) ? hash(key) : undefined;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
