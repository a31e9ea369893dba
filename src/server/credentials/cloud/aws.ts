import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { AwsScope } from '../../kernel/upstreams.ts';
import type { SignRequest } from '../../transport/host-backend.ts';
import { readText, textOrFile } from '../../transport/text-or-file.ts';
import { type AwsSigner, awsSigner } from './aws-signature.ts';
import { requireInstalled } from './cloud-package.ts';
import { noCredentials } from './no-credentials.ts';

const text = z.string().min(1);

/** AWS STS, "AssumeRole": RoleSessionName and Tags. */
const sessionName = text
  .max(64)
  .regex(/^[\w+=,.@-]+$/, { error: 'expected at most 64 letters, digits and `_+=,.@-`' });
const FIXED = 'only fixed values are supported: a role is assumed for all requests';

const roleSchema = z.lazy(() =>
  z.strictObject({
    roleArn: text
      .regex(/^arn:[\w-]+:iam::\d+:role\/\S+$/, {
        error: 'expected an ARN such as `arn:aws:iam::123456789012:role/name`',
      })
      .describe('ARN of the role.'),
    sessionName: z
      .union([sessionName, z.strictObject({}).meta({ elsewhere: { expression: FIXED } })])
      .optional()
      .describe('Name of the session in the logs of AWS. Default: `agctl`.'),
    tags: z
      .array(
        z
          .strictObject({
            key: text.max(128).describe('Key.'),
            value: z.string().max(256).describe('Value.'),
          })
          .meta({ elsewhere: { expression: FIXED } }),
      )
      .max(50)
      .default([])
      .describe('Tags of the session.'),
  }),
);

export const awsSchema = z.lazy(() =>
  z
    .strictObject({
      accessKeyId: text.optional().describe('Id of the access key. Default: the credentials of the machine.'),
      secretAccessKey: textOrFile
        .optional()
        .meta({ secret: true })
        .describe('Secret of the access key, or `{ file: … }`.'),
      sessionToken: textOrFile
        .optional()
        .meta({ secret: true })
        .describe('Token of temporary credentials, or `{ file: … }`.'),
      region: z
        .string()
        .regex(/^[a-z0-9-]+$/, { error: 'expected a region such as `us-east-1`' })
        .optional()
        .describe(
          'Region of the service. Default: that of the Bedrock provider that is called, else AWS_REGION or AWS_DEFAULT_REGION.',
        ),
      serviceName: z
        .string()
        .regex(/^[a-z0-9-]+$/, { error: 'expected a signing name such as `execute-api`' })
        .optional()
        .describe('Signing name of the service, such as `execute-api` or `lambda`. Default: `bedrock`.'),
      assumeRole: roleSchema.optional().describe('A role to assume before requests are signed.'),
    })
    .superRefine(({ accessKeyId, secretAccessKey, sessionToken, assumeRole }, context) => {
      const report = (path: string, message: string, help: string): void =>
        context.addIssue({ code: 'custom', path: [path], message, params: { code: 'AGW0105', help } });
      if (accessKeyId !== undefined && secretAccessKey === undefined)
        report('accessKeyId', '`accessKeyId` needs `secretAccessKey`', 'set both, or neither');
      if (secretAccessKey !== undefined && accessKeyId === undefined)
        report('secretAccessKey', '`secretAccessKey` needs `accessKeyId`', 'set both, or neither');
      if (sessionToken !== undefined && accessKeyId === undefined)
        report('sessionToken', '`sessionToken` needs `accessKeyId`', 'set all three, or none');
      if (assumeRole !== undefined && accessKeyId !== undefined)
        report(
          'assumeRole',
          'a role is assumed with the credentials of the machine',
          'remove `accessKeyId` and `secretAccessKey`, or `assumeRole`',
        );
    })
    .describe(
      'Signs requests for services of AWS (Signature Version 4). Bodies are held until they are signed.',
    ),
);

export type AwsConfig = z.output<typeof awsSchema>;

const AMBIENT_REGIONS = ['AWS_REGION', 'AWS_DEFAULT_REGION'];

function regionOf({ region }: AwsConfig, { env }: Pick<CompileContext, 'env'>): string | undefined {
  return (
    region ?? AMBIENT_REGIONS.map((name) => env[name]).find((value) => value !== undefined && value !== '')
  );
}

/** Reports that nothing says for which region requests are signed. */
export function reportMissingRegion(config: AwsConfig, context: CompileContext): void {
  if (regionOf(config, context) === undefined)
    context.report({
      code: 'AGW0103',
      message: '`aws` needs `region`',
      help: 'set `region`, or the environment variable AWS_REGION, to a region such as `us-east-1`',
    });
}

/** What the host name of a service says, with or without a port: `bedrock-agentcore.us-east-1.amazonaws.com`. */
export function awsScopeOf(host: string): AwsScope | undefined {
  const [, service, region] = HOST_OF_SERVICE.exec(host) ?? [];
  return service === undefined || region === undefined ? undefined : { service, region };
}

const HOST_OF_SERVICE = /(?:^|\.)([a-z0-9-]+)\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?(?::\d+)?$/i;

/** Compiles the signature; undefined if something is missing, which is reported. The region may be that of the request. */
export function awsAuth(config: AwsConfig, context: CompileContext): SignRequest | undefined {
  const { accessKeyId, serviceName, assumeRole } = config;
  const secretAccessKey =
    config.secretAccessKey && readText(config.secretAccessKey, context.at('secretAccessKey'));
  const sessionToken = config.sessionToken && readText(config.sessionToken, context.at('sessionToken'));
  const usual = regionOf(config, context);
  const keys =
    accessKeyId === undefined || secretAccessKey === undefined
      ? undefined
      : { accessKeyId, secretAccessKey, sessionToken };
  if (
    keys === undefined &&
    !requireInstalled('@aws-sdk/credential-providers', context, 'without `accessKeyId`, `aws`')
  )
    return undefined;
  const name = assumeRole?.sessionName;
  const role = assumeRole && { ...assumeRole, sessionName: typeof name === 'string' ? name : undefined };
  // By region and service, of which configurations name a few.
  const signers = new Map<string, AwsSigner>();
  return async ({ method, authority, path, headers, body, aws }) => {
    const region = config.region ?? aws?.region ?? usual;
    if (region === undefined) throw noCredentials('`region` of `aws`', 'no region to sign for');
    const service = serviceName ?? aws?.service ?? 'bedrock';
    const key = `${region}/${service}`;
    const signer = signers.get(key) ?? awsSigner(region, service, { keys, role });
    signers.set(key, signer);
    const contentType = headers.get('content-type');
    const added = await signer.sign({ method, authority, path, contentType, body });
    for (const [field, value] of Object.entries(added)) headers.set(field, value);
  };
}
