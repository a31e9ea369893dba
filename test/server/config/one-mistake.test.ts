import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Diagnostic, Path } from '../../../src/core/diagnostic.ts';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { repeats } from '../../kit/thorough.ts';

/** An example as plain values; its variables all have defaults. */
function example(name: string): unknown {
  const text = readFileSync(new URL(`../../../examples/${name}.yaml`, import.meta.url), 'utf8');
  return loadConfigText(text, 'gateway.yaml', {}).source.value;
}

function pathsOf(value: unknown, path: Path = []): Path[] {
  const own = path.length === 0 ? [] : [path];
  if (value === null || typeof value !== 'object') return own;
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return [...own, ...keys.flatMap((key) => pathsOf((value as never)[key], [...path, key]))];
}

/** The text of `tree` after changing the mapping or list that contains `path`. */
function changed(
  tree: unknown,
  path: Path,
  change: (holder: Record<string | number, unknown>, key: string | number) => void,
): string {
  const copy = structuredClone(tree);
  const holder = path.slice(0, -1).reduce((at, key) => (at as never)[key], copy);
  change(holder as Record<string | number, unknown>, path.at(-1) as string | number);
  return stringify(copy);
}

const shown = ({ code, path, message }: Diagnostic): string => `${code} ${path.join('.')} ${message}`;

async function problems(text: string) {
  const loaded = loadConfigText(text, 'gateway.yaml', {});
  const all = await findProblems(loaded, { folder: '/', env: {} });
  return { loaded: loaded.diagnostics.map(shown), all: all.map(shown), isValid: loaded.config !== undefined };
}

describe.each(['policies', 'llm'])('single mistakes in examples/%s.yaml', (name) => {
  const tree = example(name);
  // Each run tries others.
  const part = repeats(3, 1);
  const first = Math.floor(Math.random() * part);
  const paths = pathsOf(tree).filter((_, index) => index % part === first);

  test(`a missing environment variable anywhere in examples/${name}.yaml is reported as one problem`, async () => {
    const { all: before, isValid } = await problems(stringify(tree));
    expect(isValid).toBe(true);
    for (const path of paths) {
      const text = changed(tree, path, (holder, key) => {
        holder[key] = '$NOT_SET';
      });
      const { all } = await problems(text);
      const more = all.filter((each) => !before.includes(each));
      expect(more, path.join('.')).toEqual([expect.stringMatching(/^AGW0004 .* `NOT_SET` is not defined$/)]);
    }
  });

  test(`a misspelt key anywhere in examples/${name}.yaml causes no compile errors`, async () => {
    const { all: before } = await problems(stringify(tree));
    let refused = 0;
    for (const path of paths.filter((each) => typeof each.at(-1) === 'string')) {
      const text = changed(tree, path, (holder, key) => {
        holder[`${key}x`] = holder[key];
        delete holder[key];
      });
      const { loaded, all, isValid } = await problems(text);
      if (isValid) continue;
      refused++;
      expect(
        all.filter((each) => !before.includes(each) && !loaded.includes(each)),
        path.join('.'),
      ).toEqual([]);
    }
    expect(refused).toBeGreaterThan(10);
  });
});
