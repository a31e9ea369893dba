import {
  acceptedContent,
  type ElicitRequestFormParams,
  inputRequired,
  inputResponse,
} from '@modelcontextprotocol/server';
import * as z from 'zod';
import type { Fixture } from './server.ts';
import { textResult } from './tools-content.ts';

// Every tool here returns its question instead of sending it. The SDK turns that into a request to the client
// for a 2025 connection, and into an `input_required` result for a 2026 one: one tool covers both wires.

type Form = ElicitRequestFormParams['requestedSchema'];

const contactForm: Form = {
  type: 'object',
  properties: {
    username: { type: 'string', description: 'A name to show' },
    email: { type: 'string', description: 'An address to write to' },
  },
  required: ['username', 'email'],
};

// Fields, types and defaults are fixed by scenario elicitation-sep1034-defaults.
const defaultsForm: Form = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
};

const plainOptions = ['option1', 'option2', 'option3'];
const titledOptions = [
  { const: 'value1', title: 'First' },
  { const: 'value2', title: 'Second' },
  { const: 'value3', title: 'Third' },
];

// One field for each way that scenario elicitation-sep1330-enums knows to write an enumeration.
const enumsForm: Form = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: plainOptions },
    titledSingle: { type: 'string', oneOf: titledOptions },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: plainOptions } },
    titledMulti: { type: 'array', items: { anyOf: titledOptions } },
  },
};

function addForms({ server }: Fixture): void {
  const forms = {
    test_elicitation_sep1034_defaults: { form: defaultsForm, asks: 'a form with defaults' },
    test_elicitation_sep1330_enums: { form: enumsForm, asks: 'a form with enumerations' },
    test_streaming_elicitation: { form: contactForm, asks: 'a form, while its stream is open' },
  };
  for (const [name, { form, asks }] of Object.entries(forms)) {
    server.registerTool(name, { description: `Asks for ${asks}` }, (ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, 'form');
      if (answer.kind === 'elicit')
        return textResult(`${answer.action} ${JSON.stringify(answer.content ?? {})}`);
      const question = { message: 'Please fill this in', requestedSchema: form };
      return inputRequired({ inputRequests: { form: inputRequired.elicit(question) } });
    });
  }
}

function addAsked({ server }: Fixture): void {
  server.registerTool(
    'test_elicitation',
    {
      description: 'Asks the user with the given message',
      inputSchema: z.object({ message: z.string().describe('shown above the form') }),
    },
    ({ message }, ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, 'contact');
      if (answer.kind === 'elicit')
        return textResult(`${answer.action} ${JSON.stringify(answer.content ?? {})}`);
      const question = { message, requestedSchema: contactForm };
      return inputRequired({ inputRequests: { contact: inputRequired.elicit(question) } });
    },
  );
  server.registerTool(
    'test_sampling',
    {
      description: "Asks the client's model the given prompt",
      inputSchema: z.object({ prompt: z.string().describe('sent to the model as it is') }),
    },
    ({ prompt }, ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, 'sample');
      if (answer.kind === 'sampling')
        return textResult(`the model said ${JSON.stringify(answer.result.content)}`);
      return inputRequired({ inputRequests: { sample: askModel(prompt, 100) } });
    },
  );
}

/** A question for the client's model. */
export function askModel(prompt: string, maxTokens: number): ReturnType<typeof inputRequired.createMessage> {
  return inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
    maxTokens,
  });
}

export const nameForm = z.object({ name: z.string() });

/** A question for the user's name. */
export function askName(message: string): ReturnType<typeof inputRequired.elicit> {
  return inputRequired.elicit({ message, requestedSchema: nameForm });
}

function addSingleQuestions({ server }: Fixture): void {
  server.registerTool('test_input_required_result_elicitation', { description: 'Asks for a name' }, (ctx) => {
    const answer = acceptedContent(ctx.mcpReq.inputResponses, 'user_name', nameForm);
    if (answer !== undefined) return textResult(`welcome, ${answer.name}`);
    return inputRequired({ inputRequests: { user_name: askName('Who are you?') } });
  });
  server.registerTool('test_input_required_result_sampling', { description: 'Asks for a capital' }, (ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'capital_question');
    if (answer.kind === 'sampling') return textResult(JSON.stringify(answer.result.content));
    return inputRequired({ inputRequests: { capital_question: askModel('Name the capital of Peru.', 100) } });
  });
  server.registerTool(
    'test_input_required_result_list_roots',
    { description: 'Asks for the roots' },
    (ctx) => {
      const answer = inputResponse(ctx.mcpReq.inputResponses, 'client_roots');
      if (answer.kind === 'roots') return textResult(answer.roots.map((root) => root.uri).join(' '));
      return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    },
  );
}

function addUnanswerable({ server }: Fixture): void {
  // A thrown error would become a tool result; only a returned question makes the SDK check the capabilities of
  // the client and refuse with -32021.
  server.registerTool('test_missing_capability', { description: 'Needs a client with sampling' }, (ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'sample');
    if (answer.kind === 'sampling') return textResult('the client has sampling');
    return inputRequired({ inputRequests: { sample: askModel('Say anything.', 10) } });
  });
}

/** Tools that ask one question and answer with what came back. */
export function addInputTools(fixture: Fixture): void {
  addForms(fixture);
  addAsked(fixture);
  addSingleQuestions(fixture);
  addUnanswerable(fixture);
}
