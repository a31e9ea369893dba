#!/usr/bin/env node
// Plain and old syntax up to the version check, so that an old Node.js can run it.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `agctl needs Node.js 22.19 or newer; this is ${process.versions.node}.\n` +
      `Get one from https://nodejs.org, or use one for this command alone: npx -y node@26 ${process.argv[1]}\n`,
  );
  process.exitCode = 2;
} else if (!isVersionPrinted()) {
  // libuv starts its threads once, and Node.js 22 loads ES modules with them; this file is therefore CommonJS, which
  // loads without them. Up to half of the threads look up host names, each for as long as a resolver is silent; with
  // libuv's default of four, two hanging names would block all others.
  if (!process.env.UV_THREADPOOL_SIZE) process.env.UV_THREADPOOL_SIZE = '24';
  useCompileCache();
  void import('../dist/cli/main.js')
    .then(({ main }) => main(process.argv.slice(2)))
    .then((code) => {
      process.exitCode = code;
    })
    .catch((error) => {
      if (error.code !== 'ERR_MODULE_NOT_FOUND' || require('node:fs').existsSync(`${__dirname}/../dist/cli`))
        throw error;
      process.stderr.write('agctl is not built: run npm run build\n');
      process.exitCode = 2;
    });
}

/**
 * Lets Node.js keep compiled code of this program, which saves a fifth of the CPU time of short commands. In a folder of
 * this user: who can write to it decides what runs here, so Node's default, below the temporary folder, will not do.
 * Where the folder cannot be created, commands work without it. NODE_COMPILE_CACHE names another one, and
 * NODE_DISABLE_COMPILE_CACHE=1 turns it off.
 */
function useCompileCache() {
  const { join } = require('node:path');
  const cache = process.env.XDG_CACHE_HOME || (process.env.HOME && join(process.env.HOME, '.cache'));
  if (cache) require('node:module').enableCompileCache(join(cache, 'agctl'));
}

/**
 * `agctl --version` alone, which scripts ask for often: without loading the program, which takes a third of the time. Where it cannot
 * be written, the program says why.
 */
function isVersionPrinted() {
  const [option, ...others] = process.argv.slice(2);
  if (others.length > 0 || (option !== '--version' && option !== '-V')) return false;
  try {
    require('node:fs').writeSync(1, `${require('../package.json').version}\n`);
    return true;
  } catch {
    return false;
  }
}
