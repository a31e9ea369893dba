import { YAMLMap } from 'yaml';
import { ensureMap, mapAt, newPair, takePair } from './yaml-edit.ts';

/**
 * `llm.port` becomes a gateway that `llm` names. `mcp.port` stays: on its own port `mcp` serves every path, but on a
 * gateway only `/mcp`, `/sse` and `/.well-known`.
 */
export function convertLlmPort(root: YAMLMap, changes: string[]): void {
  if (mapAt(root, 'mcp')?.has('port') === true)
    changes.push('mcp.port is left: on a gateway, mcp would serve only /mcp, /sse and /.well-known');
  const llm = mapAt(root, 'llm');
  if (llm === undefined || !llm.has('port') || llm.has('gateways')) return;
  const gateways = ensureMap(root, 'gateways');
  if (gateways.has('llm')) {
    changes.push('llm.port is left: gateways.llm exists already');
    return;
  }
  const port = takePair(llm, 'port');
  const gateway = new YAMLMap();
  if (port !== undefined) gateway.items.push(port);
  gateways.items.push(newPair('llm', gateway));
  llm.items.unshift(newPair('gateways', 'llm'));
  changes.push('llm.port is now gateways.llm.port');
}
