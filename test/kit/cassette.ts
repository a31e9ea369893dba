import { writeFileSync } from 'node:fs';

/** Writes a recording of one gateway, `default`. */
export function writeCassette(file: string, exchanges: readonly object[]): void {
  const gateways = [{ name: 'default', port: 3000 }];
  const head = { cassette: 1, agctl: '0.0.0', time: '2026-01-01T00:00:00.000Z', gateways };
  const lines = [head, ...exchanges.map((exchange) => ({ gateway: 'default', ...exchange }))];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
}
