#!/usr/bin/env node
// Plain and old syntax up to the version check, so that an old Node.js can run it.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `agctl needs Node.js 22.19 or newer; this is ${process.versions.node}.\n` +
      `Get one from https://nodejs.org, or use one for this command alone: npx -y node@26 ${process.argv[1]}\n`,
  );
  process.exitCode = 2;
} else {
  // libuv starts its threads once, and Node.js 22 loads ES modules with them; this file is therefore CommonJS, which
  // loads without them. Up to half of the threads look up host names, each for as long as a resolver is silent; with
  // libuv's default of four, two hanging names would block all others.
  if (!process.env.UV_THREADPOOL_SIZE) process.env.UV_THREADPOOL_SIZE = '24';
  void import('../dist/cli/main.js')
    .then(({ main }) => main(process.argv.slice(2)))
    .then((code) => {
      process.exitCode = code;
    });
}
