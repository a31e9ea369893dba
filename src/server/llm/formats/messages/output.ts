import { shownValue } from '../../../../core/foreign.ts';
import { type Completion, completionOfItems, type StreamedOutput } from '../../chat/conversation.ts';
import { type Members, membersOf } from '../../json-members.ts';

/** The output of a message for expressions. */
export function completion({ content }: Members): Completion | undefined {
  return completionOfItems(content);
}

/** Content blocks: texts, and tool calls whose input is split over events. */
export function streamedOutput(event: Members): StreamedOutput {
  const { type } = event;
  const block =
    type === 'content_block_start'
      ? event['content_block']
      : type === 'content_block_delta' && event['delta'];
  const { type: kind, text, id, name, partial_json: written } = membersOf(block) ?? {};
  const isCall = kind === 'tool_use' || kind === 'input_json_delta';
  return [{ index: 0, text, calls: isCall ? [{ key: shownValue(event['index']), id, name, written }] : [] }];
}
