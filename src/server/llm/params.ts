import { z } from 'zod';

/**
 * Credentials in `baseUrl` are rejected, because they would not be sent: requests use its host and path, and `apiKey`.
 */
const hasUserinfo = (url: string): boolean => /^[a-z]+:\/\/[^/?#]*@/i.test(url);

export const paramsSchema = z
  .strictObject({
    apiKey: z
      .string()
      .min(1)
      .optional()
      .meta({ secret: true })
      .describe("API key for the provider. Default: the client's own key is forwarded."),
    model: z
      .string()
      .min(1)
      .optional()
      .describe('Model name sent to the provider instead of the requested name.'),
    baseUrl: z
      .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
      .refine((url) => !hasUserinfo(url), {
        error: 'expected a URL without credentials: remove `user:password@`, and set `apiKey`',
      })
      .refine((url) => !/[?#]/.test(url), { error: 'expected a URL without a query or a fragment' })
      .optional()
      .describe(
        'URL up to `/chat/completions`, such as `http://127.0.0.1:8000/v1`. Default: that of the provider.',
      ),
  })
  .describe('Connection to the provider.');

export type ProviderParams = z.output<typeof paramsSchema>;
