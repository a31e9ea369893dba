import {
  acceptedContent,
  inputRequired,
  inputResponse,
  type ServerContext,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import { clientHas } from './client-capabilities.ts';
import { type RoundState, requestState } from './input-state.ts';
import type { Fixture } from './server.ts';
import { textResult } from './tools-content.ts';
import { askModel, askName, nameForm } from './tools-input.ts';

const okForm = z.object({ ok: z.boolean() });
const colorForm = z.object({ color: z.string() });

/** The round that the client's state belongs to; 0 without state or with the state of another tool. */
function roundOf(tool: string, ctx: ServerContext): number {
  const state = ctx.mcpReq.requestState<RoundState>();
  return state?.tool === tool ? state.round : 0;
}

/** Two tools with one behaviour: a scenario follows the rules with one, and forges the state of the other. */
function addSealedQuestions({ server }: Fixture): void {
  for (const tool of [
    'test_input_required_result_request_state',
    'test_input_required_result_tampered_state',
  ]) {
    server.registerTool(tool, { description: 'Asks for a yes, and seals its state' }, async (ctx) => {
      const answer = acceptedContent(ctx.mcpReq.inputResponses, 'confirm', okForm);
      if (answer !== undefined && roundOf(tool, ctx) === 1) return textResult(`state-ok, ok is ${answer.ok}`);
      return inputRequired({
        inputRequests: { confirm: inputRequired.elicit({ message: 'Is that so?', requestedSchema: okForm }) },
        requestState: await requestState.mint({ tool, round: 1 }),
      });
    });
  }
}

function addThreeQuestions({ server }: Fixture): void {
  const tool = 'test_input_required_result_multiple_inputs';
  server.registerTool(
    tool,
    { description: 'Asks the user, the model and for the roots at once' },
    async (ctx) => {
      const { inputResponses } = ctx.mcpReq;
      const name = acceptedContent(inputResponses, 'user_name', nameForm);
      const greeting = inputResponse(inputResponses, 'greeting');
      const roots = inputResponse(inputResponses, 'client_roots');
      if (name !== undefined && greeting.kind === 'sampling' && roots.kind === 'roots') {
        return textResult(`${name.name} has ${roots.roots.length} roots`);
      }
      return inputRequired({
        inputRequests: {
          user_name: askName('Who are you?'),
          greeting: askModel('Say hello.', 50),
          client_roots: inputRequired.listRoots(),
        },
        requestState: await requestState.mint({ tool, round: 1 }),
      });
    },
  );
}

function addTwoRounds({ server }: Fixture): void {
  const tool = 'test_input_required_result_multi_round';
  server.registerTool(tool, { description: 'Asks for a name, then for a colour' }, async (ctx) => {
    const { inputResponses } = ctx.mcpReq;
    const round = roundOf(tool, ctx);
    const color = acceptedContent(inputResponses, 'step2', colorForm);
    if (round === 2 && color !== undefined) return textResult(`the colour is ${color.color}`);
    if (round === 1 && acceptedContent(inputResponses, 'step1', nameForm) !== undefined) {
      const question = { message: 'Which colour?', requestedSchema: colorForm };
      return inputRequired({
        inputRequests: { step2: inputRequired.elicit(question) },
        requestState: await requestState.mint({ tool, round: 2 }),
      });
    }
    return inputRequired({
      inputRequests: { step1: askName('Who are you?') },
      requestState: await requestState.mint({ tool, round: 1 }),
    });
  });
}

function addSuitableQuestions(fixture: Fixture): void {
  fixture.server.registerTool(
    'test_input_required_result_capabilities',
    { description: 'Asks only what the client can answer' },
    (ctx) => {
      const canElicit = clientHas('elicitation', fixture, ctx);
      const canSample = clientHas('sampling', fixture, ctx);
      const name = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', nameForm);
      const greeting = inputResponse(ctx.mcpReq.inputResponses, 'greeting');
      if ((!canElicit || name !== undefined) && (!canSample || greeting.kind === 'sampling')) {
        return textResult('everything that could be asked was answered');
      }
      return inputRequired({
        inputRequests: {
          ...(canElicit && { user_name: askName('Who are you?') }),
          ...(canSample && { greeting: askModel('Say hello.', 50) }),
        },
      });
    },
  );
}

/** Tools that ask several questions, in one round or in several, and tools that guard their state. */
export function addInputRoundTools(fixture: Fixture): void {
  addSealedQuestions(fixture);
  addThreeQuestions(fixture);
  addTwoRounds(fixture);
  addSuitableQuestions(fixture);
}
