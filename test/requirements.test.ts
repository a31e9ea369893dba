import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { citedIds, covers, verifies } from './kit/verifies.ts';
import { type Requirement, requirements } from './requirements.ts';

const folder = dirname(fileURLToPath(import.meta.url));
const all = new Map<string, Requirement>(Object.entries(requirements));
// This file quotes citations without making any.
const files = globSync('**/*.test.ts', { cwd: folder }).filter((name) => name !== 'requirements.test.ts');
const citations = files.flatMap((file) =>
  citedIds(readFileSync(`${folder}/${file}`, 'utf8')).map((id) => ({ file, id })),
);
const cited = new Set(citations.map(({ id }) => id));

describe('the list of requirements', () => {
  test('each implemented requirement is cited by a test', () => {
    const uncited = [...all].filter(([id, { deferred }]) => deferred === undefined && !cited.has(id));
    expect(uncited.map(([id, { text }]) => `${id}: ${text}`)).toEqual([]);
  });

  test('tests cite only requirements that exist', () => {
    expect(citations.filter(({ id }) => !all.has(id))).toEqual([]);
  });

  test('requirements that a test cites are not marked as deferred', () => {
    expect(citations.filter(({ id }) => all.get(id)?.deferred !== undefined)).toEqual([]);
  });

  test('each requirement has a unique id, a location and a text', () => {
    for (const [id, { source, text, deferred }] of all) {
      expect(id).toMatch(/^(?:gateway|memory)(?:\.[a-z0-9-]+)+$/);
      expect(source).toMatch(/^(?:gateway|memory-adapter)\.md#\S/);
      expect(text, id).toMatch(/\.$/);
      expect(deferred, id).not.toBe('');
    }
    const text = readFileSync(`${folder}/requirements.ts`, 'utf8');
    expect(text.match(/^ {2}'(?:gateway|memory)\./gm)).toHaveLength(all.size);
  });
});

describe('citations of requirements', () => {
  test('citations of requirements are read from verifies and covers in every code format', () => {
    const text = `
      covers('a.1', 'a.2');
      covers(
        'a.3',
      );
      verifies('b.1', 'not.an.id', () => {});
      verifies(['c.1', 'c.2'], 'also.not', run);
      verifies(
        [
          'd.1',
        ],
        'neither', run);
    `;
    expect(citedIds(text).sort()).toEqual(['a.1', 'a.2', 'a.3', 'b.1', 'c.1', 'c.2', 'd.1']);
  });

  test('citations of requirements in comments do not count', () => {
    const text = `
      // covers('a.1');
      /* verifies('a.2', 'name', run);
       * covers('a.3'); */
      const [glob, url] = ['*/*.yaml', 'http://host']; covers('a.4');
    `;
    expect(citedIds(text)).toEqual(['a.4']);
  });

  test('citations of requirements that do not exist throw', () => {
    const unknown = 'gateway.nothing' as keyof typeof requirements;
    expect(() => covers(unknown)).toThrow('no such requirement: gateway.nothing');
    expect(() => verifies(unknown, 'never registered', () => undefined)).toThrow('no such requirement');
  });
});
