import { isBuiltin } from 'node:module';
import { promisify } from 'node:util';

/**
 * Loaded at the first call of one of their functions. The others are loaded at the start of every Node.js program, or
 * by its standard output.
 */
const LAZY = new Set([
  'child_process',
  'crypto',
  'dns',
  'dns/promises',
  'http',
  'https',
  'perf_hooks',
  'timers/promises',
  'tls',
  'worker_threads',
  'zlib',
]);

const STANDARD_STREAMS = new Set(['stdin', 'stdout', 'stderr']);

const PREFIX = '\0node:';

/**
 * A plugin that replaces `import … from 'node:…'`. The import reads every export of the module, also those that nobody
 * wants: reading `WebSocket` of `node:http` loads Node's own copy of undici (60 ms of CPU time), reading `stdin` of
 * `node:process` opens it. A bundle reads only the names that it uses.
 */
export function lazyNodeModules() {
  return {
    name: 'lazy-node-modules',
    resolveId: {
      order: 'pre',
      handler: (id, importer, { kind }) => {
        if (id.startsWith(PREFIX)) return id;
        if (!isBuiltin(id)) return null;
        const name = id.replace(/^node:/, '');
        // `require` reads no exports. The bundler's own module, which is loaded first, needs it. `import()` wants every
        // export, but only when it is evaluated: `ReadStream` of `node:fs` loads the streams, which takes 2 ms.
        const isKept =
          kind === 'require-call' || kind === 'dynamic-import' || importer?.startsWith('\0rolldown/');
        return isKept ? { id: `node:${name}`, external: true } : PREFIX + name;
      },
    },
    load: (id) => {
      if (!id.startsWith(PREFIX)) return null;
      const [name, key] = id.slice(PREFIX.length).split('#');
      const code =
        key === undefined ? moduleText(name) : `export default ${pure(`${library(name)}.${key}`)};`;
      return { code, moduleSideEffects: false };
    },
  };
}

/**
 * The file for a module that contains one export of a Node.js module, which is read when the file is loaded; null for
 * other modules.
 */
export function fileOfExport(id) {
  const [name, key] = id.startsWith(PREFIX) ? id.slice(PREFIX.length).split('#') : [];
  return key === undefined ? null : `node-${name.replace('/', '-')}-${key}`;
}

/** The text of a module with the same exports. The bundler drops those that are not used. */
function moduleText(name) {
  const exports = process.getBuiltinModule(`node:${name}`);
  const keys = Object.keys(exports).filter((key) => key !== 'default');
  if (!LAZY.has(name))
    return [
      `const module = ${pure(library(name))};`,
      ...keys.map((key) =>
        // Reading `stdin` loads Node's streams.
        STANDARD_STREAMS.has(key) ? inOwnFile(name, key) : exported(key, pure(`module.${key}`)),
      ),
      'export default module;',
    ].join('\n');
  return [
    'let loaded;',
    `const module = () => (loaded ??= ${library(name)});`,
    ...keys.map((key) => {
      const value = lazily(key, exports[key]);
      return value === undefined ? inOwnFile(name, key) : exported(key, value);
    }),
    `export default ${members('module()')};`,
  ].join('\n');
}

const inOwnFile = (name, key) => `export { default as ${key} } from '${PREFIX}${name}#${key}';`;
const library = (name) => `process.getBuiltinModule('node:${name}')`;
const exported = (key, value) => `const $${key} = ${value};\nexport { $${key} as ${key} };`;

/** An expression whose value loads the module when it is used; undefined if there is none. */
function lazily(key, value) {
  const expression = `module().${key}`;
  // Neither classes, nor functions that `promisify` replaces by others.
  if (typeof value === 'function')
    return /^[a-z]/.test(key) && value[promisify.custom] === undefined
      ? `(...args) => ${expression}(...args)`
      : undefined;
  // Such as `constants`; but `parentPort`, say, is null in this process only.
  if (typeof value !== 'object' || value === null) return undefined;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null ? members(expression) : undefined;
}

/** An object whose members can be read. */
const members = (object) => `/*#__PURE__*/ new Proxy({}, { get: (_, name) => ${object}[name] })`;

/** An expression that is dropped if nothing uses its value. */
const pure = (expression) => `/*#__PURE__*/ (() => ${expression})()`;
