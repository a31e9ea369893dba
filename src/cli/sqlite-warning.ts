let isLeftOut = false;

/**
 * Node.js 22 warns on standard error, whenever `node:sqlite` is loaded, that it is experimental. In threads an option prevents that;
 * for commands that load it themselves, this leaves the warning out. Others are printed as before.
 */
export function withoutSqliteWarning(): void {
  if (isLeftOut) return;
  isLeftOut = true;
  const printers = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name === 'ExperimentalWarning' && warning.message.startsWith('SQLite')) return;
    for (const print of printers) print(warning);
  });
}
