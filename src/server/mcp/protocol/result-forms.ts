import { entryIn, isRecord, membersOf, parseJson } from '../../../core/foreign.ts';
import { edit, elements, insertion, valueAt, withoutMembers } from '../../kernel/json/json-text.ts';
import { type Choice, type Form, inForm, type Shape } from './form.ts';
import { base64Of, isBase64, mediaOf } from './media.ts';

// What the official SDKs require of results. They refuse all of a result for one value of another form, such as the list of all
// resources if one has no name. What a value must have for its meaning stays: a resource without a URI is left out.

const isText = (value: unknown): value is string => typeof value === 'string';
const oneOf = (...values: string[]): Shape => ({ is: (value) => isText(value) && values.includes(value) });

const ROLE = oneOf('user', 'assistant');
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
    audience: listOf(ROLE),
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
const named = (addressKey: string): Shape => {
  const form: Shape = {
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
    return isText(uri) && (isText(text) || isBase64(blob));
  },
  members: { mimeType: TEXT, text: TEXT, blob: { is: isBase64 }, _meta: OBJECT },
  repair: (value, own) => {
    const { uri, text, blob } = membersOf(value);
    if (!isText(uri)) return undefined;
    if (isText(text) || !isText(blob)) return again(CONTENTS, withText(value, own));
    const base64 = base64Of(blob);
    return again(
      CONTENTS,
      base64 === undefined ? withMember(own, 'text', blob) : withMember(own, 'blob', base64),
    );
  },
};

const BLOCK_MEMBERS = { annotations: ANNOTATIONS, _meta: OBJECT };

/** Content that clients cannot read, as a text: they refuse all of a result for it, and nothing of it is to be lost. */
const asText = (value: unknown, own: string): string | undefined =>
  value === null ? undefined : JSON.stringify({ type: 'text', text: textOf(value, own) });

const media = (kind: 'image' | 'audio'): Shape => ({
  is: (value) => isBase64(membersOf(value)['data']) && isText(membersOf(value)['mimeType']),
  members: BLOCK_MEMBERS,
  repair: (value, own) => {
    const { data, mimeType } = mediaOf(kind, membersOf(value)) ?? {};
    if (data === undefined) return asText(value, own);
    return again(BLOCK, withMember(withMember(own, 'mimeType', mimeType), 'data', data));
  },
});

const LINK = named('uri');

/** Content of each type; every other one is a text for clients. */
const BLOCKS: Readonly<Record<string, Shape>> = {
  text: {
    is: (value) => isText(membersOf(value)['text']),
    members: BLOCK_MEMBERS,
    repair: (value, own) => again(BLOCK, withText(value, own)),
  },
  image: media('image'),
  audio: media('audio'),
  resource_link: { ...LINK, repair: (value, own) => LINK.repair?.(value, own) ?? asText(value, own) },
  resource: { is: isRecord, required: { resource: CONTENTS }, members: BLOCK_MEMBERS, repair: asText },
};

/** Content without a type, or of an unknown one: a text, or the data that a tool returns. */
const UNTYPED: Shape = {
  is: () => false,
  repair: (value, own) => {
    const { type, text } = membersOf(value);
    return isText(text) && !isText(type) ? again(BLOCK, withMember(own, 'type', 'text')) : asText(value, own);
  },
};

/** Types of content in results. */
export const CONTENT_TYPES: readonly string[] = Object.keys(BLOCKS);

const BLOCK: Choice = {
  all: Object.values(BLOCKS),
  of(value) {
    const { type } = membersOf(value);
    return (isText(type) ? entryIn(BLOCKS, type) : undefined) ?? UNTYPED;
  },
};

/** Content of a tool's result: a text or a single block is a list of one. */
const CONTENT: Form = {
  is: Array.isArray,
  items: BLOCK,
  repair: (value, text) => (value === null ? '[]' : again(CONTENT, `[${text}]`)),
};

const TOOL_RESULT: Form = {
  is: (value) => 'content' in membersOf(value) || !lacksContent(value),
  members: { content: CONTENT, isError: BOOLEAN, _meta: OBJECT },
  repair: (_, text) => again(TOOL_RESULT, withMember(text, 'content', [])),
};

/** Whether a result is that of a tool without `content`, which the Python SDK requires, or empty; a task has none. */
function lacksContent(value: unknown): boolean {
  const members = membersOf(value);
  const { structuredContent, task } = members;
  return task === undefined && (structuredContent !== undefined || Object.keys(members).length === 0);
}

const listed = (member: string, items: Form): Form => ({
  is: isRecord,
  required: { [member]: requiredList(items) },
  members: { nextCursor: TEXT, _meta: OBJECT },
});

/** "Completion results: maximum 100 items per response" (2025-11-25, "Completion"). */
const MOST_COMPLETIONS = 100;

/** As Gemini calls it, and serializers of enums; what else there is, such as `system`, is not of the assistant. */
const roleOf = (said: unknown): string =>
  isText(said) && /^(?:assistant|model)$/i.test(said) ? 'assistant' : 'user';

/** A message of a prompt. One with a list of content is several messages, as content is not a list there. */
const MESSAGE: Form = {
  is: (value) => ROLE.is(membersOf(value)['role']) && !Array.isArray(membersOf(value)['content']),
  required: { content: BLOCK },
  repair: (value, own) => {
    if (isText(value)) return JSON.stringify({ role: 'user', content: { type: 'text', text: value } });
    if (!isRecord(value)) return undefined;
    const role = roleOf(value['role']);
    if (!Array.isArray(value['content']))
      return role === value['role'] ? undefined : again(MESSAGE, withMember(own, 'role', role));
    return contentTexts(own, value['content'])
      .map((content) => `{"role":"${role}","content":${content}}`)
      .join(',');
  },
};

/** Each element of `content` of an object, as JSON text that clients can read. */
function contentTexts(own: string, content: readonly unknown[]): string[] {
  const span = valueAt(own, ['content']);
  if (span === undefined) return [];
  const list = own.slice(span.start, span.end);
  return elements(list).flatMap(
    ({ start, end }, index) => inForm(BLOCK, list.slice(start, end), content[index]) ?? [],
  );
}

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
