import { type Path, pathText } from '../../core/diagnostic.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { YamlSource } from '../../core/yaml/source.ts';

/** Where something stands in the configuration, for traces: the key of a section, the value of an expression. */
export function placeOf(source: YamlSource, path: Path, at: 'key' | 'value'): TracePlace {
  const { start } = at === 'key' ? source.keyRange(path) : source.valueRange(path);
  return {
    configPath: pathText(path),
    configFile: source.file,
    configLine: start.line,
    configColumn: start.column,
  };
}
