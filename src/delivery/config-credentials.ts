// config-credentials.ts: the option `credentials`, which says where the signing keys come from.

import { z } from 'zod'
import { assertNever } from '../std/assert.ts'
import { filePath, secret } from '../std/schema.ts'
import type { CredentialsOptions } from './delivery-options.ts'

export const credentialsSchema = z
  .discriminatedUnion('source', [
    z.strictObject({
      source: z
        .literal('environment')
        .describe('AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if set, AWS_SESSION_TOKEN.'),
    }),
    z.strictObject({
      source: z
        .literal('chain')
        .describe(
          'The credentials that the AWS tools find on this machine: environment, shared files, a process, a ' +
            'container or instance role, web identity. They are refreshed before they expire, and read again ' +
            'when their files change.',
        ),
      profile: z.string().min(1).optional().describe('Profile in the shared credentials file.'),
    }),
    z.strictObject({
      source: z
        .literal('file')
        .describe(
          'A JSON file. It is read again when it changes; the old credentials stay in use until the new ' +
            'file can be read.',
        ),
      path: filePath()
        .meta({ examples: ['${env:CREDENTIALS_DIRECTORY}/ingestion.json'] })
        .describe(
          'Contains `{"accessKeyId": "...", "secretAccessKey": "...", "sessionToken": "..."}`. With systemd, ' +
            'use LoadCredential.',
        ),
    }),
    z.strictObject({
      source: z.literal('keys').describe('Keys in the config, from the environment or a file.'),
      access_key_id: z.string().min(1).describe('Access key id, usually `${env:NAME}`.'),
      secret_access_key: secret().describe('Secret key, only as `${env:NAME}` or `${file:PATH}`.'),
      session_token: secret().optional().describe('Session token of temporary credentials.'),
    }),
  ])
  .describe(
    'Where the keys that sign each request come from. Without credentials nothing is sent: data is kept in the ' +
      'spool, a condition says so, and the gateway looks for credentials again.',
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
