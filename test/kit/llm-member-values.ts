// Values of members in samples of LLM requests and answers.

/** Base64 of bytes that are no text. */
export const PNG = Buffer.from([
  0x89,
  0x50,
  0x4e,
  0x47,
  ...Array.from({ length: 90 }, (_, at) => at),
]).toString('base64');

/** A schema of a tool or of an answer. */
export const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string', description: 'A city.', enum: ['Rome'] } },
};
export const IMAGE_URL = { type: 'image_url', image_url: { url: 'https://a.example/x.png', detail: 'auto' } };

/** Members that no API has. */
export const UNKNOWN = { unknown: { inner: [{ text: 'x', list: ['y'] }], flag: true }, unknown_text: 'z' };

export const LOGPROB = { token: 'a', logprob: -1, bytes: [97], top_logprobs: [{ token: 'b', logprob: -2 }] };
