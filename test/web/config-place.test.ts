import { describe, expect, test } from 'vitest';
import { placeAt } from '../../src/web/admin/config/place.ts';

/** The cursor is at the bar. */
const at = (text: string) => {
  const place = placeAt(text.replace('|', ''), text.indexOf('|'));
  return place && [place.path.join('.'), place.typing, [...place.siblings].join(' ')];
};

describe('the place of the cursor in a configuration', () => {
  test('the path of a key follows indentation, past lists, comments and siblings', () => {
    expect(at('|')).toEqual(['', 'key', '']);
    expect(at('config: {adminAddr: off}\ngat|')).toEqual(['', 'key', 'config']);
    expect(at('gateways:\n  edge:\n    port: 0\n    ro|\n    tls:\n')).toEqual([
      'gateways.edge',
      'key',
      'port tls',
    ]);
    const routes = 'gateways:\n  edge:\n    routes:\n      - name: a\n        policies:\n';
    expect(at(`${routes}          # which\n\n          co|`)).toEqual([
      'gateways.edge.routes.0.policies',
      'key',
      '',
    ]);
    expect(at(`${routes}          cors: {}\n      - na|`)).toEqual(['gateways.edge.routes.0', 'key', '']);
    expect(at(`${routes}          cors: {}\n        ba|`)).toEqual([
      'gateways.edge.routes.0',
      'key',
      'policies name',
    ]);
  });

  test('a list may begin at the column of its key, and within another list', () => {
    expect(at('mcp:\n  targets:\n  - name: a\n  - |')).toEqual(['mcp.targets.0', 'key', '']);
    expect(at('mcp:\n  targets:\n  - name: a\n    st|')).toEqual(['mcp.targets.0', 'key', 'name']);
    expect(at('a:\n- - x|')).toEqual(['a.0.0', 'key', '']);
  });

  test('a value has the path of its key', () => {
    expect(at('gateways:\n  edge:\n    protocol: H|')).toEqual(['gateways.edge.protocol', 'value', '']);
    expect(at('mcp:\n  targets:\n  - kind: |')).toEqual(['mcp.targets.0.kind', 'value', '']);
  });

  test('there is no completion in flow style and in quoted text', () => {
    expect(at('config: {adm|')).toBeUndefined();
    expect(at('name: "a b|')).toBeUndefined();
    expect(at('- [a, b|')).toBeUndefined();
  });
});
