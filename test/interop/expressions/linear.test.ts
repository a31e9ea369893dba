import { globSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

// An expression that can match the same text in several ways takes quadratic time or worse: 44 characters of a form's part, or 64
// of a duration in CEL, kept the process busy for minutes.

interface Node {
  readonly regex?: { readonly pattern: string; readonly flags: string };
  readonly start: number;
}
interface Verdict {
  readonly status: 'safe' | 'vulnerable' | 'unknown';
  readonly complexity?: { readonly summary: string };
  readonly attack?: { readonly pattern: string };
  readonly error?: { readonly kind: string };
}
interface Packages {
  parseSync(file: string, text: string): { readonly program: unknown };
  readonly Visitor: new (visit: { Literal(node: Node): void }) => { visit(program: unknown): void };
  check(source: string, flags: string, options: object): Promise<Verdict>;
}

const source = join(fileURLToPath(new URL('../../..', import.meta.url)), 'src');

/** Those that read texts with a bound, by what bounds them. Some are found on a quick machine only. */
const BOUNDED: Readonly<Record<string, string>> = {
  'adapter/memory/embed/models/add-model.ts': 'the name of a package or file',
  'adapter/memory/markdown/chunk.ts': 'the beginning of a heading',
  'adapter/memory/markdown/split-block.ts': 'lines of at most 500 characters',
  'adapter/memory/search/owners.ts': 'it begins where a word does, which recheck does not count',
  'admin/app.ts': 'a request target has no line ends',
  'admin/refused-request.ts': 'a request target has no line ends',
  'cli/commands/config-explain.ts': 'an argument',
  'cli/commands/proxy-log.ts': 'an answer of at most 64 KiB, whose parentheses close',
  'cli/commands/proxy-memory.ts': 'names of at most 200 characters',
  'cli/commands/verify.ts': 'an argument',
  'cli/connect/endpoint.ts': 'a path of the configuration',
  'cli/connect/shown-diff.ts': 'lines of a file of this user',
  'cli/init/litellm/policies.ts': 'digits of one number',
  'cli/init/mcp-servers.ts': 'names in a file of this user',
  'cli/init/server-json/packages.ts': 'an identifier of at most 300 characters',
  'cli/init/variables.ts': 'an argument in a file of this user',
  'cli/man/command-page.ts': 'our own help',
  'cli/monitoring/queries.ts': 'an argument',
  'cli/proxy/dump-parts.ts': 'a duration',
  'cli/proxy/trace-text.ts': 'a literal of an expression in the configuration',
  'core/budget.ts': 'digits of one number',
  'core/duration.ts': 'a text that is known to be a duration',
  'core/redact.ts': 'at most 64 characters before the match, or the match',
  'core/yaml/env.ts': 'the configuration, which the operator wrote',
  'core/yaml/syntax-error.ts': 'lines of the configuration',
  'server/config/header-reads.ts': 'at most 150 characters',
  'server/config/reading/value-messages.ts': 'a port of the configuration',
  'server/expressions/cel/functions/encoding.ts': 'Base64, which has at most two signs at its end',
  'server/expressions/cel/time.ts': 'a duration of at most 64 characters',
  'server/llm/cost/decimal.ts': 'digits of one number',
  'server/llm/models/health.ts': 'a text that is known to be a duration',
  'server/llm/request/read-request.ts': 'a request target of at most 16 KiB',
  'server/mcp/guardrails/methods.ts': 'a method of the configuration',
  'server/mcp/targets/openapi/operations.ts': 'at most 1,000 characters, without two underscores in a row',
  'server/mcp/targets/stdio/stdio.ts': 'a command of the configuration',
  'server/observe/otlp/exporter.ts': 'a message of a package',
  'server/policies/a2a.ts': 'a request target has no line ends',
  'server/policies/modules/module-files.ts': "the stack of an error in the operator's own module",
  'server/record/money.ts': 'digits of one number',
};

async function packages(): Promise<Packages> {
  const require = createRequire(join(env['EXPRESSIONS'] ?? '', 'index.js'));
  const load = (name: string): object => require(name) as object;
  return { ...load('oxc-parser'), ...load('recheck') } as Packages;
}

/** The places of each expression in `src` that repeats something, without the pages, which read our own server. */
function expressionsIn({ parseSync, Visitor }: Packages): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const file of globSync('**/*.ts', { cwd: source, exclude: ['web/**'] })) {
    const text = readFileSync(join(source, file), 'utf8');
    const visitor = new Visitor({
      Literal({ regex, start }) {
        if (regex === undefined || !/[*+]|,\}/.test(regex.pattern)) return;
        const key = `${regex.flags}/${regex.pattern}`;
        const line = text.slice(0, start).split('\n').length;
        found.set(key, [...(found.get(key) ?? []), `${file}:${line}`]);
      },
    });
    visitor.visit(parseSync(file, text).program);
  }
  return found;
}

describe('regular expressions', () => {
  test('take linear time, or read texts with a bound', async () => {
    const loaded = await packages();
    const all = expressionsIn(loaded);
    expect(all.size).toBeGreaterThan(400);
    const slow: string[] = [];
    let unjudged = 0;
    for (const [key, places] of all) {
      const [, flags = '', pattern = ''] = /^(\w*)\/(.*)$/s.exec(key) ?? [];
      const judge = (checker: string) =>
        loaded.check(pattern, flags.replace('v', 'u'), { checker, timeout: 5_000 });
      let verdict = await judge('automaton');
      // An expression that looks ahead or back, or that counts.
      if (verdict.status === 'unknown') verdict = await judge('fuzz');
      if (verdict.status === 'unknown') unjudged += 1;
      if (verdict.status !== 'vulnerable') continue;
      for (const place of places) {
        const file = place.replace(/:\d+$/, '');
        if (!Object.hasOwn(BOUNDED, file))
          slow.push(`${place} /${pattern}/ ${verdict.complexity?.summary}: ${verdict.attack?.pattern}`);
      }
    }
    process.stdout.write(`${all.size} expressions, ${unjudged} of them not judged within 5 s\n`);
    expect(slow).toEqual([]);
  }, 1_800_000);
});
