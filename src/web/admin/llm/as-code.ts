import type { Endpoint } from '../playground/endpoints.ts';

/** Quotes a text as one word for a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** The request as a command. The token is a variable, so that it does not enter the shell's history. */
export function asCurl(
  { port, path, host }: Endpoint,
  body: Readonly<Record<string, unknown>>,
  hasToken: boolean,
): string {
  return [
    `curl -sS http://127.0.0.1:${port}${path} \\`,
    `  -H 'content-type: application/json' \\`,
    ...(host === undefined ? [] : [`  -H ${quoted(`host: ${host}`)} \\`]),
    ...(hasToken ? [`  -H "authorization: Bearer $GATEWAY_TOKEN" \\`] : []),
    `  -d ${quoted(JSON.stringify(body))}`,
  ].join('\n');
}

/** The request in the OpenAI SDK for JavaScript. */
export function asSdk(
  { port, path }: Endpoint,
  body: Readonly<Record<string, unknown>>,
  hasToken: boolean,
): string {
  const base = `http://127.0.0.1:${port}${path.replace(/\/chat\/completions$/, '')}`;
  const isStream = body['stream'] === true;
  return [
    `import OpenAI from 'openai';`,
    '',
    `const client = new OpenAI({`,
    `  baseURL: ${JSON.stringify(base)},`,
    `  apiKey: ${hasToken ? 'process.env.GATEWAY_TOKEN' : `'none'`},`,
    `});`,
    `const answer = await client.chat.completions.create(${JSON.stringify(body, null, 2)});`,
    isStream
      ? `for await (const chunk of answer) process.stdout.write(chunk.choices[0]?.delta?.content ?? '');`
      : `console.log(answer.choices[0].message.content);`,
  ].join('\n');
}
