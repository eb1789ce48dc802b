// config-credentials.ts: where the keys that sign come from, as the config says it.

import { z } from 'zod'
import { assertNever } from '../std/assert.ts'
import { secret } from '../std/schema.ts'
import type { CredentialsOptions } from './delivery-options.ts'

export const credentialsSchema = z
  .discriminatedUnion('source', [
    z.strictObject({
      source: z
        .literal('environment')
        .describe('AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, where there is one, AWS_SESSION_TOKEN.'),
    }),
    z.strictObject({
      source: z
        .literal('chain')
        .describe(
          'Whatever the AWS tools would find on this machine: environment, shared files, a process, a container ' +
            'or instance role, web identity. Refreshed before it expires; its files are read again when they change.',
        ),
      profile: z.string().min(1).optional().describe('Profile of the shared credentials file.'),
    }),
    z.strictObject({
      source: z
        .literal('file')
        .describe(
          'A JSON file of our own, read again when it changes; the old ones serve until it can be read.',
        ),
      path: z
        .string()
        .min(1)
        .meta({ examples: ['${env:CREDENTIALS_DIRECTORY}/ingestion.json'] })
        .describe(
          'Holds `{"accessKeyId": "...", "secretAccessKey": "...", "sessionToken": "..."}`. With systemd, let ' +
            'LoadCredential bring it.',
        ),
    }),
    z.strictObject({
      source: z.literal('keys').describe('Keys put in from the environment or a file.'),
      access_key_id: z.string().min(1).describe('The access key id; usually `${env:NAME}`.'),
      secret_access_key: secret().describe('The secret; only as `${env:NAME}` or `${file:PATH}`.'),
      session_token: secret().optional().describe('For temporary credentials.'),
    }),
  ])
  .describe(
    'Where the keys that sign each request come from. Without them nothing is sent: the spool fills, a condition ' +
      'says so, and they are looked for again and again.',
  )

type CredentialsConfig = z.output<typeof credentialsSchema>

export function credentialsOptions(config: CredentialsConfig): CredentialsOptions {
  switch (config.source) {
    case 'environment':
      return { source: 'environment' }
    case 'chain':
      return { source: 'chain', profile: config.profile ?? null }
    case 'file':
      return { source: 'file', path: config.path }
    case 'keys':
      return {
        source: 'keys',
        accessKeyId: config.access_key_id,
        secretAccessKey: config.secret_access_key,
        sessionToken: config.session_token ?? null,
      }
    default:
      return assertNever(config)
  }
}
