import {
  acceptedContent,
  completable,
  type GetPromptResult,
  inputRequired,
  type PromptMessage,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import { pngPixel } from './media.ts';
import type { Fixture } from './server.ts';

const places = ['paris', 'parma', 'porto', 'prague'];

function fromUser(...contents: PromptMessage['content'][]): GetPromptResult {
  return { messages: contents.map((content) => ({ role: 'user', content })) };
}

function text(value: string): PromptMessage['content'] {
  return { type: 'text', text: value };
}

// Completion offers every known place that begins with what was typed.
function placesFrom(typed: string): string[] {
  return places.filter((place) => place.startsWith(typed));
}

function addPlainPrompts({ server }: Fixture): void {
  server.registerPrompt('test_simple_prompt', { description: 'One message, no arguments' }, () =>
    fromUser(text('a prompt without arguments')),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'An image and a question about it' }, () =>
    fromUser({ type: 'image', data: pngPixel, mimeType: 'image/png' }, text('which colour is this pixel?')),
  );
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'Repeats its two arguments; the first can be completed',
      argsSchema: z.object({
        arg1: completable(z.string().describe('a place'), placesFrom),
        arg2: z.string().describe('anything'),
      }),
    },
    ({ arg1, arg2 }) => fromUser(text(`from ${arg1} to ${arg2}`)),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    {
      description: 'Carries the named resource inside its first message',
      argsSchema: z.object({ resourceUri: z.string().describe('URI that the resource shall carry') }),
    },
    ({ resourceUri }) =>
      fromUser(
        { type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'inside a prompt' } },
        text('summarise the resource'),
      ),
  );
}

const contextForm = z.object({ context: z.string() });

/** Prompts: plain ones, and one that asks the user something before it answers. */
export function addPrompts(fixture: Fixture): void {
  addPlainPrompts(fixture);
  fixture.server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'Asks for a context first' },
    (ctx) => {
      const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_context', contextForm);
      if (answer !== undefined) return fromUser(text(`in the context of ${answer.context}`));
      const question = { message: 'In which context?', requestedSchema: contextForm };
      return inputRequired({ inputRequests: { user_context: inputRequired.elicit(question) } });
    },
  );
}
