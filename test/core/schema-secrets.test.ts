// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is what people write in their files.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { secretPaths, secretRanges } from '../../src/core/schema/secrets.ts';
import { YamlSource } from '../../src/core/yaml/source.ts';

const key = z.union([z.string().meta({ secret: true }), z.strictObject({ file: z.string() })]);
const schema = z.strictObject({
  apiKey: key.optional(),
  pin: z.number().meta({ secret: true }).optional(),
  headers: z.record(z.string(), z.string()).meta({ secret: true }).optional(),
  providers: z.array(z.strictObject({ key: key.default('x'), name: z.string() })).optional(),
  shared: z.lazy(() => z.strictObject({ token: z.string() }).meta({ secret: true })).optional(),
  limit: z.number().optional(),
});

describe('secretPaths', () => {
  it.each([
    [{ apiKey: 'x', limit: 3 }, ['apiKey']],
    [{ apiKey: { file: 'key.txt' } }, []],
    [{ apiKey: 123 }, ['apiKey']],
    [{ apiKey: ['a', 'b'] }, ['apiKey/0', 'apiKey/1']],
    [{ apiKey: { value: 'x' } }, ['apiKey/value']],
    [{ pin: 1234 }, ['pin']],
    [{ headers: { a: 'x', b: { c: 'y' } } }, ['headers/a', 'headers/b/c']],
    [{ providers: [{ name: 'n', key: 'k' }, { key: 'l' }] }, ['providers/0/key', 'providers/1/key']],
    [{ shared: { token: 't', more: 1 } }, ['shared/token', 'shared/more']],
    [{ apikye: 'x', lmit: 3 }, ['apikye']],
    [{ clientSecret: 'x', unknown: 'y' }, ['clientSecret']],
    // Unknown keys for numbers of tokens: numbers are none, everything else is.
    [{ maxResultTokens: 100_000, tokenLimit: '5k', max_output_tokens: 4096, tokensPerFill: 10 }, []],
    [{ maxTokens: { get: 5000, other: { a: 1 } } }, []],
    [
      { maxTokens: 'sk-123456', tokenLimit: '5k-abc', maxResultTokens: 1_234_567_890 },
      ['maxTokens', 'tokenLimit', 'maxResultTokens'],
    ],
    [
      { maxTokens: { get: 5000, token: 123, key: 'x', deep: { secret: 4, name: 'n' } } },
      ['maxTokens/token', 'maxTokens/key', 'maxTokens/deep/secret', 'maxTokens/deep/name'],
    ],
    [
      { token: 5000, sessionTokens: 5000, accessToken: 1, tokens: 5, limitToken: 7 },
      ['token', 'sessionTokens', 'accessToken', 'tokens', 'limitToken'],
    ],
    [{ apiKey: { maxTokens: 5 }, headers: { maxTokens: '5' } }, ['apiKey/maxTokens', 'headers/maxTokens']],
    [null, []],
    ['text', []],
  ])('secretPaths of %j', (value, expected) => {
    expect(secretPaths(schema, value).map((path) => path.join('/'))).toEqual(expected);
  });
});

describe('secretRanges', () => {
  const masked = (text: string, env: Record<string, string> = {}) => {
    const { source } = YamlSource.parse(text, 'x.yaml', env);
    return secretRanges(schema, source).map(({ start, end }) => text.slice(start.offset, end.offset));
  };

  it('secretRanges cover the whole source text of a value and exclude references', () => {
    expect(masked('apiKey: "sk-1"\npin: 12\n')).toEqual(['"sk-1"', '12']);
    expect(masked('apiKey: $K\n', { K: 'sk-1' })).toEqual([]);
    expect(masked('apiKey: ${K:-sk-1}\n')).toEqual(['${K:-sk-1}']);
  });

  it('secretRanges are found by key names in a file with YAML syntax errors', () => {
    expect(
      masked('a: [\n  - apiKey: "sk-1\n    "client-secret": sk-2\nTOKEN:   sk-3  # x\nlimit: 3\n'),
    ).toEqual(['"sk-1', 'sk-2', 'sk-3  # x']);
  });

  it('secretRanges are found in bounded time in a hostile line', () => {
    const text = `[\n${'-'.repeat(2_000_000)}key\n${'key'.repeat(700_000)}\n`;
    const started = process.threadCpuUsage();
    expect(masked(text)).toEqual([]);
    expect(process.threadCpuUsage(started).user / 1000).toBeLessThan(3000);
  });
});
