/** Wire formats of calls, named as in `formats` of a `custom` provider. */
export type FormatKey =
  | 'completions'
  | 'textCompletions'
  | 'responses'
  | 'messages'
  | 'anthropicTokenCount'
  | 'embeddings'
  | 'rerank'
  | 'moderations'
  | 'speech'
  | 'transcriptions'
  | 'images'
  | 'realtime';

/** `gen_ai.operation.name` of OpenTelemetry, as far as it has a name. */
export type Operation = 'chat' | 'text_completion' | 'embeddings' | 'responses' | 'other';
