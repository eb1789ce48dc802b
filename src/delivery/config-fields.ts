// config-fields.ts: the options of the section `delivery` that a provider of its list may say for itself,
// without their defaults: what a provider does not say is taken from the section (config.ts).

import { createSecureContext } from 'node:tls'
import { z } from 'zod'
import { messageOf } from '../std/gateway-error.ts'
import { duration, secret, size } from '../std/schema.ts'
import type { Secret } from '../std/secret.ts'
import { credentialsSchema } from './config-credentials.ts'

export const dayMs = 86_400_000

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

const proxy = z
  .string()
  .meta({ examples: ['environment', 'none', 'http://proxy.example.com:3128'] })
  .refine(isProxy, {
    error: 'must be environment, none, or a URL such as http://proxy.example.com:3128 without a user name',
  })

export const batchFields = {
  max_payloads: z
    .int()
    .min(1)
    .max(10_000)
    .describe(
      'Payloads in one batch. The specification shows no limit; lower it when the service refuses batches with ' +
        '400 or 413. Batches sealed before stay as they are.',
    ),
  max_bytes: size({ minBytes: 1024, maxBytes: 16 * 1024 ** 2 }).describe(
    'Bytes of one request body. A single payload beyond it is still sent, alone.',
  ),
  linger: duration({ minMs: 0, maxMs: 3_600_000 }).describe(
    'How long a payload waits for company before its batch is sealed although it is not full. Longer means ' +
      'fewer, larger requests and later data.',
  ),
}

export const tlsFields = {
  ca: z
    .string()
    .min(1)
    .describe(
      'PEM text of the authorities that sign the certificate of the service, usually `${file:/etc/.../ca.pem}`. ' +
        'Replaces the public ones.',
    ),
  cert: z
    .string()
    .min(1)
    .describe(
      'PEM text of the certificate chain that we show to the service, where it asks for one; needs `key`.',
    ),
  key: secret().describe('PEM text of the private key of `cert`, usually `${file:/etc/.../key.pem}`.'),
  key_passphrase: secret().describe('Where the key is encrypted.'),
}

export const backfillFields = {
  after: duration({ minMs: 1000, maxMs: 30 * dayMs }).describe(
    'Payloads older than this are no longer live: they go behind what is fresh.',
  ),
  min_share: z
    .number()
    .min(0.01)
    .max(1)
    .describe('Part of the turns that a backlog gets however much fresh data there is, so that it drains.'),
  max_share: z
    .number()
    .min(0.01)
    .max(1)
    .describe(
      'Part of `max_in_flight` that a backlog may take. Where that is more than one, one place stays free for fresh ' +
        'data in any case.',
    ),
  order: z
    .enum(['oldest-first', 'newest-first'])
    .describe('Which part of a backlog goes first, in pieces of `rotate_every`.'),
  rotate_every: duration({ minMs: 60_000, maxMs: 30 * dayMs }).describe(
    'In an outage a new piece of the backlog is begun so often.',
  ),
}

export const limitsFields = {
  payloads_per_second: z.number().min(0.01).max(1e6).describe('Most payloads per second, on average.'),
  requests_per_second: z.number().min(0.01).max(1e5).describe('Most requests per second, on average.'),
}

export const backoffFields = {
  min: duration({ minMs: 10, maxMs: dayMs }).describe('Largest delay after the first failure.'),
  max: duration({ minMs: 10, maxMs: dayMs }).describe('Largest delay after many failures.'),
  probe_every: duration({ minMs: 1000, maxMs: dayMs }).describe(
    'Between two tries after 401 or 403 and of what is held; varied by 20 %.',
  ),
}

export const fields = {
  base_url: baseUrl.describe(
    'The ingestion API, up to but without `/v2/telemetry`. A path before it is kept.',
  ),
  provider_key: z
    .string()
    .regex(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/, 'must be printable ASCII without spaces at its ends')
    .max(256)
    .describe('Sent as X-Provider-Key. Aggregators only; without it no such header is sent.'),
  credentials: credentialsSchema,
  mode: z
    .enum(['batch', 'single'])
    .describe(
      '`single` sends every payload by itself with `POST /v2/telemetry`, for integrations that are not enabled for ' +
        'batches. It needs a request for each payload, so it is slower by far; `batch` and its linger then mean nothing.',
    ),
  max_in_flight: z
    .int()
    .min(1)
    .max(64)
    .describe('Batches sent at once. Fewer are while requests fail; it comes back as they succeed.'),
  timeout: duration({ minMs: 100, maxMs: 3_600_000 }).describe(
    'For one request, until its answer is read. What it cuts off is sent again, the same batch under the same ' +
      'batchId, so a value below what the service needs means that nothing is ever delivered.',
  ),
  connect_timeout: duration({ minMs: 100, maxMs: 600_000 }).describe(
    'For the TCP connection and TLS handshake alone; through a proxy for the tunnel as well.',
  ),
  max_response_bytes: size({ minBytes: 16 * 1024, maxBytes: 64 * 1024 ** 2 }).describe(
    'A larger answer counts as unreadable: the batch is sent again later. 500 payloads answer 20 KiB.',
  ),
  proxy: proxy.describe(
    'How the service is reached: `environment` goes by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and never through a proxy ' +
      'to this machine; `none` directly; a URL names the proxy, for whatever address. It must allow CONNECT: the ' +
      'request itself is between the service and us.',
  ),
  proxy_auth: z
    .strictObject({
      user: z
        .string()
        .min(1)
        .max(256)
        .regex(/^[^:]*$/, 'must have no colon')
        .describe('Name for the proxy.'),
      password: secret().describe('Password for the proxy.'),
    })
    .describe(
      'Basic authentication at the proxy of `proxy`; for one of the environment it stands in its URL.',
    ),
  errors: z
    .record(
      z.string().min(1).max(64),
      z
        .union([z.array(delay()).max(32), z.literal('delivered')], {
          error: 'must be a list of delays such as [5m, 1h], or the word delivered',
        })
        .describe('The rule for one `errorType`, or for `default`.'),
    )
    .describe(
      'What follows when the service answers `failed` for a payload, by its `errorType`; `default` is for all ' +
        'others. A list: wait so long and send it again, once for each delay, then it becomes a dead letter. ' +
        '`delivered`: this error means that the service has it already. Default: `Validation: [5m, 1h]`, ' +
        '`default: [10s, 1m, 5m, 15m, 1h, 3h, 6h, 12h]`.',
    ),
  on_repeat: z
    .enum(['hold', 'delivered', 'resend'])
    .describe(
      'When the service answers 409 for a batch that was sent before: `hold` keeps it and tries slowly, ' +
        '`delivered` takes the 409 as proof that the first one arrived, `resend` sends the payloads again under a new ' +
        'batchId, which may store them twice.',
    ),
}

type Own<Value> = Value | undefined

/**
 * What only shows when all of `tls` is seen: the key fits the certificate, the texts are PEM. Null where all
 * is well.
 */
export function problemOfTls(tls: {
  ca?: Own<string>
  cert?: Own<string>
  key?: Own<Secret>
  key_passphrase?: Own<Secret>
}): string | null {
  const { ca, cert, key, key_passphrase: passphrase } = tls
  if (cert !== undefined && key === undefined) return 'must have the key of its cert'
  if (key !== undefined && cert === undefined) return 'must have the cert of its key'
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----'))
    return 'must have PEM text as ca, with BEGIN CERTIFICATE'
  try {
    createSecureContext({
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined || key === undefined ? {} : { cert, key: key.reveal() }),
      ...(passphrase === undefined ? {} : { passphrase: passphrase.reveal() }),
    })
    return null
  } catch (error) {
    // OpenSSL's words name the fault, never the key.
    return `must be a certificate and its key as PEM (${messageOf(error)})`
  }
}

function isProxy(text: string): boolean {
  if (text === 'environment' || text === 'none') return true
  if (!URL.canParse(text)) return false
  const { protocol, username, password, pathname, search, hash } = new URL(text)
  if (protocol !== 'http:' && protocol !== 'https:') return false
  return username === '' && password === '' && pathname === '/' && search === '' && hash === ''
}

function problemOfBaseUrl(text: string): string | null {
  if (!URL.canParse(text)) return 'must be a URL such as https://ingest.example.com'
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must start with https:// or http://'
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password'
  if (/[?#]/.test(text)) return 'must have no query and no fragment'
  // The signature is over the normalised and twice encoded path: what needs no encoding is the same for
  // everyone.
  const path = text.replace(/^[a-z]+:\/\/[^/]*/i, '')
  if (!/^[A-Za-z0-9._~/-]*$/.test(path)) return 'must have a path of letters, digits and . _ ~ - only'
  if (path.split('/').some((part) => part === '.' || part === '..') || /\/\/./.test(path))
    return 'must have no empty, "." or ".." part in its path'
  return null
}
