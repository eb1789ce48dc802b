// config.ts: the section `delivery` of the config.

import { z } from 'zod'
import { assertNever } from '../std/assert.ts'
import { duration, secret, size } from '../std/schema.ts'
import { defaultProvider } from '../domain/ids.ts'
import { defaultPace } from './options.ts'
import type { CredentialsOptions, DeliveryOptions, RetryRule } from './options.ts'

const dayMs = 86_400_000

const delay = () => duration({ minMs: 0, maxMs: 7 * dayMs })

const baseUrl = z
  .string()
  .meta({ format: 'uri', examples: ['https://ingest.example.com', 'http://127.0.0.1:8081/telemetry'] })
  .transform((text, context) => {
    const problem = problemOfBaseUrl(text)
    if (problem === null) return text.replace(/\/+$/, '')
    context.addIssue({ code: 'custom', message: `${problem}, found "${text}"` })
    return z.NEVER
  })

const credentials = z
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
            'or instance role, web identity. Refreshed before it expires.',
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
  .prefault({ source: 'environment' })
  .describe(
    'Where the keys that sign each request come from. Without them nothing is sent: the spool fills, a condition ' +
      'says so, and they are looked for again and again.',
  )

const batch = z
  .strictObject({
    max_payloads: z
      .int()
      .min(1)
      .max(10_000)
      .default(500)
      .describe(
        'Payloads in one batch. The specification shows no limit; lower it when the service refuses batches with ' +
          '400 or 413. Batches sealed before stay as they are.',
      ),
    max_bytes: size({ minBytes: 1024, maxBytes: 16 * 1024 ** 2 })
      .prefault('1MiB')
      .describe('Bytes of one request body. A single payload beyond it is still sent, alone.'),
    linger: duration({ minMs: 0, maxMs: 3_600_000 })
      .prefault('1s')
      .describe(
        'How long a payload waits for company before its batch is sealed although it is not full. Longer means ' +
          'fewer, larger requests and later data.',
      ),
  })
  .prefault({})

const errors = z
  .record(
    z.string().min(1).max(64),
    z.union([z.array(delay()).max(32), z.literal('delivered')], {
      error: 'must be a list of delays such as [5m, 1h], or the word delivered',
    }),
  )
  .prefault({})
  .describe(
    'What follows when the service answers `failed` for a payload, by its `errorType`; `default` is for all ' +
      'others. A list: wait so long and send it again, once for each delay, then it becomes a dead letter. ' +
      '`delivered`: this error means that the service has it already. Default: `Validation: [5m, 1h]`, ' +
      '`default: [10s, 1m, 5m, 15m, 1h, 3h, 6h, 12h]`.',
  )

export const deliverySchema = z.strictObject({
  base_url: baseUrl.describe(
    'The ingestion API, up to but without `/v2/telemetry`. A path before it is kept.',
  ),
  provider_key: z
    .string()
    .regex(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/, 'must be printable ASCII without spaces at its ends')
    .max(256)
    .optional()
    .describe('Sent as X-Provider-Key. Aggregators only; without it no such header is sent.'),
  credentials,
  batch,
  max_in_flight: z
    .int()
    .min(1)
    .max(64)
    .default(4)
    .describe('Batches sent at once. Fewer are while requests fail; it comes back as they succeed.'),
  timeout: duration({ minMs: 100, maxMs: 3_600_000 })
    .prefault('30s')
    .describe(
      'For one request, until its answer is read. What it cuts off is sent again, the same batch under the same ' +
        'batchId, so a value below what the service needs means that nothing is ever delivered.',
    ),
  connect_timeout: duration({ minMs: 100, maxMs: 600_000 })
    .prefault('10s')
    .describe('For the TCP connection and TLS handshake alone.'),
  max_response_bytes: size({ minBytes: 16 * 1024, maxBytes: 64 * 1024 ** 2 })
    .prefault('1MiB')
    .describe(
      'A larger answer counts as unreadable: the batch is sent again later. 500 payloads answer 20 KiB.',
    ),
  tls: z
    .strictObject({
      ca: z
        .string()
        .min(1)
        .optional()
        .describe(
          'PEM text of the authorities that sign the certificate of the service, usually `${file:/etc/.../ca.pem}`. ' +
            'Replaces the public ones.',
        ),
    })
    .prefault({}),
  errors,
  on_repeat: z
    .enum(['hold', 'delivered'])
    .default('hold')
    .describe(
      'When the service answers 409 for a batch that was sent before: `hold` keeps it and tries slowly, ' +
        '`delivered` takes the 409 as proof that the first one arrived.',
    ),
  backoff: z
    .strictObject({
      min: duration({ minMs: 10, maxMs: dayMs }).prefault('1s'),
      max: duration({ minMs: 10, maxMs: dayMs }).prefault('60s'),
      probe_every: duration({ minMs: 1000, maxMs: dayMs })
        .prefault('10m')
        .describe('Between two tries after 401 or 403 and of what is held; varied by 20 %.'),
    })
    .prefault({})
    .describe(
      'After a failure the next try waits a random time below `min`, doubled at each further failure up to `max`. ' +
        'A Retry-After of the service is kept, up to 10 min.',
    ),
})

export type DeliveryConfig = z.output<typeof deliverySchema>

const defaultRules: readonly (readonly [string, RetryRule])[] = [
  ['Validation', [300_000, 3_600_000]],
  ['default', [10_000, 60_000, 300_000, 900_000, 3_600_000, 10_800_000, 21_600_000, 43_200_000]],
]

/** The same in our units. One provider, `default`, is all that this section can say so far. */
export function deliveryOptions(config: DeliveryConfig): DeliveryOptions {
  const { batch, backoff } = config
  return {
    maxInFlightTotal: config.max_in_flight,
    providers: [
      {
        name: defaultProvider,
        baseUrl: config.base_url,
        providerKey: config.provider_key ?? null,
        credentials: credentialsOptions(config.credentials),
        batch: { payloadsMax: batch.max_payloads, bodyBytesMax: batch.max_bytes, lingerMs: batch.linger },
        maxInFlight: config.max_in_flight,
        timeoutMs: config.timeout,
        connectTimeoutMs: config.connect_timeout,
        responseBytesMax: config.max_response_bytes,
        ca: config.tls.ca ?? null,
        retryRules: new Map<string, RetryRule>([...defaultRules, ...Object.entries(config.errors)]),
        onRepeat: config.on_repeat,
        pace: {
          ...defaultPace,
          backoffMinMs: backoff.min,
          backoffMaxMs: Math.max(backoff.min, backoff.max),
          slowProbeMs: backoff.probe_every,
        },
      },
    ],
  }
}

function credentialsOptions(config: DeliveryConfig['credentials']): CredentialsOptions {
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

function problemOfBaseUrl(text: string): string | null {
  if (!URL.canParse(text)) return 'must be a URL such as https://ingest.example.com'
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must start with https:// or http://'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  if (/[?#]/.test(text)) return 'must have no query and no fragment'
  // The signature is over the normalised and twice encoded path: what needs no encoding is the same for everyone.
  const path = text.replace(/^[a-z]+:\/\/[^/]*/i, '')
  if (!/^[A-Za-z0-9._~/-]*$/.test(path)) return 'must have a path of letters, digits and . _ ~ - only'
  if (path.split('/').some((part) => part === '.' || part === '..') || /\/\/./.test(path))
    return 'must have no empty, "." or ".." part in its path'
  return null
}
