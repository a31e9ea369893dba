/** One connection's worth of bytes, as latin1. */
export type Case = readonly [name: string, bytes: string];

export const HOST = 'Host: localhost';

/** A request with these lines after Host. */
export const request = (start: string, lines: readonly string[] = [], body = ''): string =>
  [start, HOST, ...lines, '', body].join('\r\n');

export const get = (target: string, ...lines: string[]): string => request(`GET ${target} HTTP/1.1`, lines);
export const post = (lines: readonly string[], body = ''): string => request('POST /p HTTP/1.1', lines, body);
export const bare = (start: string, ...lines: string[]): string => [start, ...lines, '', ''].join('\r\n');
export const chunked = (body: string, ...lines: string[]): string =>
  post(['Transfer-Encoding: chunked', ...lines], body);

/** Cases that differ in one text. */
export const each = (what: string, texts: readonly string[], make: (text: string) => string): Case[] =>
  texts.map((text) => [`${what}: ${JSON.stringify(text)}`, make(text)]);

/** A chunked body of four bytes. */
export const END = '4\r\nabcd\r\n0\r\n\r\n';
