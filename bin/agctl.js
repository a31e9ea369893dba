#!/usr/bin/env node
// Plain and old syntax up to the version check, so that an old Node can say what it needs.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`agctl needs Node.js 22.19 or newer; this is ${process.versions.node}.\n`);
  process.exitCode = 2;
} else {
  const { main } = await import('../dist/cli/main.js');
  process.exitCode = await main(process.argv.slice(2));
}
