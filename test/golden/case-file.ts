import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';

/**
 * A golden case is one file: a line of JSON with settings, the input, a line of ten dashes, and the expected output.
 * `UPDATE_GOLDEN=1` writes the actual output instead of comparing; review the difference before keeping it.
 */
export interface GoldenCase<Settings> {
  readonly settings: Settings;
  readonly input: string;
}

const RULE = '\n----------\n';

/** Declares one test for each `*.case` file in `folder`; `produce` gives the output without a final line break. */
export function runGoldenCases<Settings>(
  folder: URL,
  produce: (each: GoldenCase<Settings>) => string | Promise<string>,
): void {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.case'))
    .toSorted();
  for (const name of files) {
    it(name.replace(/\.case$/, ''), async () => {
      const file = new URL(name, folder);
      const text = readFileSync(file, 'utf8');
      const headerEnd = text.indexOf('\n');
      const rule = text.indexOf(RULE, headerEnd);
      const settings = JSON.parse(text.slice(0, headerEnd)) as Settings;
      const input = text.slice(headerEnd + 1, rule + 1);
      const actual = `${await produce({ settings, input })}\n`;
      if (process.env['UPDATE_GOLDEN'] !== undefined) {
        writeFileSync(file, text.slice(0, rule) + RULE + actual);
        return;
      }
      expect(actual).toBe(text.slice(rule + RULE.length));
    });
  }
  it('the folder of golden files is not empty', () => expect(files.length).toBeGreaterThan(0));
}
