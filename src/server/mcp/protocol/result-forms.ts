import { entryIn, isRecord, membersOf, parseJson } from '../../../core/foreign.ts';
import { edit, insertion, valueAt, withoutMembers } from '../../kernel/json/json-text.ts';
import { type Form, inForm } from './form.ts';

// What the official SDKs require of results. They refuse all of a result for one value of another form, such as the list of all
// resources if one has no name. What a value must have for its meaning stays: a resource without a URI is left out.

const isText = (value: unknown): value is string => typeof value === 'string';
const oneOf = (...values: string[]): Form => ({ is: (value) => isText(value) && values.includes(value) });

const TEXT: Form = { is: isText };
const BOOLEAN: Form = { is: (value) => typeof value === 'boolean' };
const NUMBER: Form = { is: Number.isFinite };
const OBJECT: Form = { is: isRecord };
const listOf = (items: Form): Form => ({ is: Array.isArray, items });

/** As `z.iso.datetime({ offset: true })` of the TypeScript SDK: a date alone is refused. */
const isDateTime = (value: unknown): boolean =>
  isText(value) &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(value) &&
  !Number.isNaN(Date.parse(value));

const ANNOTATIONS: Form = {
  is: isRecord,
  members: {
    audience: listOf(oneOf('user', 'assistant')),
    priority: { is: (value) => typeof value === 'number' && value >= 0 && value <= 1 },
    lastModified: { is: isDateTime },
  },
};
const ICON: Form = {
  is: (value) => isText(membersOf(value)['src']),
  members: { mimeType: TEXT, sizes: listOf(TEXT), theme: oneOf('light', 'dark') },
};
/** Members of everything that is listed. */
const LISTED = { title: TEXT, description: TEXT, icons: listOf(ICON), _meta: OBJECT };
const RESOURCE = { ...LISTED, mimeType: TEXT, size: NUMBER, annotations: ANNOTATIONS };

/** Optional members of a tool. */
export const TOOL_MEMBERS: Readonly<Record<string, Form>> = {
  ...LISTED,
  annotations: {
    is: isRecord,
    members: {
      title: TEXT,
      readOnlyHint: BOOLEAN,
      destructiveHint: BOOLEAN,
      idempotentHint: BOOLEAN,
      openWorldHint: BOOLEAN,
    },
  },
  execution: { is: isRecord, members: { taskSupport: oneOf('required', 'optional', 'forbidden') } },
};

/** The text of an object with another value of a member. */
function withMember(text: string, key: string, value: unknown): string {
  const rest = withoutMembers(text, [], (other) => other === key);
  const added = insertion(rest, 0, `${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return added === undefined ? rest : edit(rest, [added]);
}

/** A resource, a link to one, or a template: one without a name is shown with its title or address. */
const named = (addressKey: string): Form => {
  const form: Form = {
    is: (value) => isText(membersOf(value)['name']) && isText(membersOf(value)[addressKey]),
    members: RESOURCE,
    repair: (value, text) => {
      const { [addressKey]: address, title } = membersOf(value);
      if (!isText(address)) return undefined;
      return again(form, withMember(text, 'name', isText(title) ? title : address));
    },
  };
  return form;
};

/** What a changed text is in a form: its other members may be wrong as well. */
const again = (form: Form, text: string): string | undefined => inForm(form, text, parseJson(text));

/** A list that clients require: serializers write null for an empty one, and some servers a single object. */
const requiredList = (items: Form, most?: number): Form => {
  const form: Form = {
    is: Array.isArray,
    items,
    ...(most !== undefined && { most }),
    repair: (value, text) => {
      if (value === null) return '[]';
      return isRecord(value) ? again(form, `[${text}]`) : undefined;
    },
  };
  return form;
};

const PROMPT: Form = {
  is: (value) => isText(membersOf(value)['name']),
  members: {
    ...LISTED,
    arguments: listOf({
      is: (value) => isText(membersOf(value)['name']),
      members: { title: TEXT, description: TEXT, required: BOOLEAN },
    }),
  },
};

/** A text in place of a value and its JSON text: serializers write null for an empty one, and tools return data. */
const textOf = (value: unknown, own: string): string =>
  isText(value) ? value : value === undefined || value === null ? '' : own;

/** The JSON text of an object with a text in place of its member `text`. */
function withText(value: unknown, own: string): string {
  const span = valueAt(own, ['text']);
  const text = textOf(membersOf(value)['text'], span === undefined ? '' : own.slice(span.start, span.end));
  return withMember(own, 'text', text);
}

/** The contents of a resource. */
const CONTENTS: Form = {
  is: (value) => {
    const { uri, text, blob } = membersOf(value);
    return isText(uri) && (isText(text) || isText(blob));
  },
  members: { mimeType: TEXT, text: TEXT, blob: TEXT, _meta: OBJECT },
  repair: (value, own) =>
    isText(membersOf(value)['uri']) ? again(CONTENTS, withText(value, own)) : undefined,
};

const BLOCK_MEMBERS = { annotations: ANNOTATIONS, _meta: OBJECT };

/** Content of each type that may lack something; others stay as sent, since an extension may define them. */
const BLOCKS: Readonly<Record<string, Form>> = {
  text: {
    is: (value) => isText(membersOf(value)['text']),
    members: BLOCK_MEMBERS,
    repair: (value, own) => again(BLOCK, withText(value, own)),
  },
  resource_link: named('uri'),
  resource: { is: isRecord, required: { resource: CONTENTS }, members: BLOCK_MEMBERS },
};

/** Content without a type: a text, or the data that a tool returns. */
const UNTYPED: Form = {
  is: (value) => isText(membersOf(value)['type']),
  members: BLOCK_MEMBERS,
  repair: (value, own) => {
    if (value === null) return undefined;
    if (isText(membersOf(value)['text'])) return again(BLOCK, withMember(own, 'type', 'text'));
    return JSON.stringify({ type: 'text', text: textOf(value, own) });
  },
};

const BLOCK: Form = (value) => {
  const { type } = membersOf(value);
  const form = (isText(type) ? entryIn(BLOCKS, type) : undefined) ?? UNTYPED;
  return typeof form === 'function' ? form(value) : form;
};

/** Content of a tool's result: a text or a single block is a list of one. */
const CONTENT: Form = {
  is: Array.isArray,
  items: BLOCK,
  repair: (value, text) => (value === null ? '[]' : again(CONTENT, `[${text}]`)),
};

const TOOL_RESULT: Form = {
  is: (value) => 'content' in membersOf(value) || !isOnlyStructured(value),
  members: { content: CONTENT, isError: BOOLEAN, _meta: OBJECT },
  repair: (_, text) => again(TOOL_RESULT, withMember(text, 'content', [])),
};

/** Whether a result is that of a tool without `content`, which the Python SDK requires; a task has none. */
function isOnlyStructured(value: unknown): boolean {
  const { structuredContent, task } = membersOf(value);
  return structuredContent !== undefined && task === undefined;
}

const listed = (member: string, items: Form): Form => ({
  is: isRecord,
  required: { [member]: requiredList(items) },
  members: { nextCursor: TEXT, _meta: OBJECT },
});

/** "Completion results: maximum 100 items per response" (2025-11-25, "Completion"). */
const MOST_COMPLETIONS = 100;

/** A message of a prompt. */
const MESSAGE: Form = { is: isRecord, required: { role: oneOf('user', 'assistant'), content: BLOCK } };

/** The form of the complete results of each method, except lists of tools. */
export const RESULT_FORMS: Readonly<Record<string, Form>> = {
  'tools/call': TOOL_RESULT,
  'tasks/result': TOOL_RESULT,
  'resources/list': listed('resources', named('uri')),
  'resources/templates/list': listed('resourceTemplates', named('uriTemplate')),
  'resources/read': {
    is: isRecord,
    required: { contents: requiredList(CONTENTS) },
    members: { _meta: OBJECT },
  },
  'prompts/list': listed('prompts', PROMPT),
  'prompts/get': {
    is: isRecord,
    required: { messages: requiredList(MESSAGE) },
    members: { description: TEXT, _meta: OBJECT },
  },
  'completion/complete': {
    is: isRecord,
    required: {
      completion: {
        is: isRecord,
        required: { values: requiredList(TEXT, MOST_COMPLETIONS) },
        members: { total: NUMBER, hasMore: BOOLEAN },
      },
    },
  },
};
