// config-fields.ts: the options of the section `delivery` that each provider may override, with defaults.
// What a provider does not set comes from the section (config.ts).

import { z } from 'zod'
import { readUrl } from '../std/given-url/given-url.ts'
import { duration, pem, pemKey, secret, size } from '../std/schema.ts'
import type { Secret } from '../std/secret.ts'
import { pemPartsProblem } from '../std/tls/pem.ts'
import { credentialsSchema } from './config-credentials.ts'
import { httpProtocols } from './proxy.ts'

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
  .meta({ format: 'url', examples: ['environment', 'none', 'http://proxy.example.com:3128'] })
  .refine(isProxy, {
    error: 'must be environment, none, or a URL such as http://proxy.example.com:3128 without a user name',
  })

export const providerKey = z
  .string()
  .regex(/^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/, 'must be printable ASCII without spaces at its ends')
  .max(256)
  .describe('Value of the header X-Provider-Key, for aggregators. Without it the header is not sent.')
  .optional()

export const sharedFields = {
  base_url: baseUrl.describe(
    'URL of the ingestion API, without `/v2` and what follows it. It may have a path.',
  ),
  credentials: credentialsSchema.prefault({ source: 'environment' }),
  mode: z
    .enum(['batch', 'single'])
    .describe(
      '`single` sends each payload alone with `POST /v2/telemetry`, for integrations that are not enabled for ' +
        'batches. It needs one request per payload and is much slower. The section `batch` then has no effect.',
    )
    .default('batch'),
  batch: z
    .strictObject({
      max_payloads: z
        .int()
        .min(1)
        .max(10_000)
        .describe(
          'Maximum number of payloads in one batch. The specification has no limit. Lower it when the ' +
            'service refuses batches with 400 or 413. Batches that are already sealed do not change.',
        )
        .default(500),
      max_bytes: size({ minBytes: 1024, maxBytes: 16 * 1024 ** 2 })
        .describe('Maximum size of one request body. A larger payload is sent alone.')
        .prefault('1MiB'),
      linger: duration({ minMs: 0, maxMs: 3_600_000 })
        .describe(
          'How long a payload waits for others before a batch that is not full is sealed. A longer linger means ' +
            'fewer and larger requests, and later data.',
        )
        .prefault('1s'),
    })
    .prefault({})
    .describe('Limits of a batch.'),
  max_in_flight: z
    .int()
    .min(1)
    .max(64)
    .describe(
      'Batches that are sent at the same time. The gateway sends fewer while requests fail, and more ' +
        'again as they succeed. With 1, a batch is sent when the one before is settled on the disk.',
    )
    .default(4),
  timeout: duration({ minMs: 100, maxMs: 3_600_000 })
    .describe(
      'Time for one request, until its answer is read. After a timeout the same batch is sent again under ' +
        'the same batchId. If the value is shorter than the service needs, nothing is ever delivered. The request ' +
        'gets twice the expected time of its upload in addition, at most 4 min in all; while the speed of the ' +
        'link is unknown, after a start, at most twice this value. After each timeout of a batch of 16 KiB or ' +
        'more that was sent completely its time doubles, up to 4 min.',
    )
    .prefault('30s'),
  connect_timeout: duration({ minMs: 100, maxMs: 600_000 })
    .describe(
      'Time for the TCP connection and the TLS handshake, and for the tunnel through a proxy. Each address of a ' +
        'name gets a third of it, the last one all that is left.',
    )
    .prefault('10s'),
  compress: z
    .enum(['off', 'gzip'])
    .describe(
      'Compression of the requests. `gzip` sends about a fifth of the bytes, for slow or expensive links. The ' +
        'specification of the service does not show that it accepts gzip: try it with `check --connect`.',
    )
    .default('off'),
  tls: z
    .strictObject({
      ca: pem('certificate')
        .describe(
          'Authorities that sign the certificate of the service: the path of a PEM file, or PEM text. They replace the ' +
            'public authorities.',
        )
        .optional(),
      cert: pem('certificate')
        .describe(
          'Client certificate chain, if the service requires one: the path of a PEM file, or PEM text. Needs `key`.',
        )
        .optional(),
      key: pemKey()
        .describe('Private key of `cert`: the path of a PEM file, `${file:PATH}` or `${env:NAME}`.')
        .optional(),
      key_passphrase: secret().describe('Passphrase of an encrypted `key`.').optional(),
    })
    .prefault({})
    .describe('Certificates for the connection to the service.'),
  proxy: proxy
    .describe(
      'The proxy to the service. `environment`: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, and no proxy to this machine. ' +
        '`none`: a direct connection. A URL: this proxy, for any address. The proxy must allow CONNECT and cannot ' +
        'read the requests.',
    )
    .default('environment'),
  proxy_auth: z
    .strictObject({
      user: z
        .string()
        .min(1)
        .max(256)
        .regex(/^[^:]*$/, 'must have no colon')
        .describe('User name at the proxy.'),
      password: secret().describe('Password at the proxy.'),
    })
    .describe(
      'Basic authentication for a `proxy` that is a URL. For a proxy of the environment, put user name ' +
        'and password into its URL.',
    )
    .optional(),
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
      'What to do when the service answers `failed` for a payload, by `errorType`; `default` is for all other ' +
        'types. A list of delays: send the payload again after each delay, then make it a dead letter. Attempts ' +
        'are counted for each list; a payload has at most as many as all lists have delays together. ' +
        '`delivered`: the error means that the service already has the payload. Default: `Validation: [5m, 1h]`, ' +
        '`default: [10s, 1m, 5m, 15m, 1h, 3h, 6h, 12h]`.',
    )
    .prefault({}),
  on_repeat: z
    .enum(['hold', 'delivered', 'resend'])
    .describe(
      'What to do when the service answers 409 for a batch that was sent before. `hold`: keep it and try again ' +
        'every `probe_every`. `delivered`: the 409 proves that the first submission arrived. `resend`: send the ' +
        'payloads again under a new batchId; the service may then store them twice.',
    )
    .default('hold'),
  on_refused_repeat: z
    .enum(['hold', 'split'])
    .describe(
      'What to do when the service answers 400 or 413 for a batch that it may have processed before: an earlier ' +
        'submission was sent completely and got no answer, or a server error. `hold`: send the same bytes again, ' +
        'and keep the batch for a person after three refusals. `split`: find the payload at fault under new ' +
        'batchIds; the service may then store payloads twice.',
    )
    .default('hold'),
  backfill: z
    .strictObject({
      after: duration({ minMs: 1000, maxMs: 30 * dayMs })
        .describe('Payloads older than this are backfill: fresh data is sent before them.')
        .prefault('15m'),
      min_share: z
        .number()
        .min(0.01)
        .max(1)
        .describe(
          'Smallest part of the requests that a backlog gets. It gets this part also when there is much ' +
            'fresh data.',
        )
        .default(0.1),
      max_share: z
        .number()
        .min(0.01)
        .max(1)
        .describe(
          'Largest part of `max_in_flight` for a backlog. If `max_in_flight` is more than one, one submission is ' +
            'always reserved for fresh data.',
        )
        .default(1),
      order: z
        .enum(['oldest-first', 'newest-first'])
        .describe('Which part of a backlog is sent first, in parts of `rotate_every`.')
        .default('oldest-first'),
      rotate_every: duration({ minMs: 60_000, maxMs: 30 * dayMs })
        .describe('How often a new part of the backlog begins during an outage.')
        .prefault('1h'),
    })
    .prefault({})
    .describe('After an outage fresh data is sent first. These options control how the backlog follows.'),
  limits: z
    .strictObject({
      payloads_per_second: z
        .number()
        .min(0.01)
        .max(1e6)
        .describe(
          'Maximum average number of payloads per second. A new batch holds at most what may be sent in 10 s.',
        )
        .optional(),
      requests_per_second: z
        .number()
        .min(0.01)
        .max(1e5)
        .describe('Maximum average number of requests per second.')
        .optional(),
    })
    .prefault({})
    .describe('Limits of the average number of payloads and requests per second. Default: no limit.'),
  backoff: z
    .strictObject({
      min: duration({ minMs: 10, maxMs: dayMs })
        .describe('Largest delay after the first failure.')
        .prefault('1s'),
      max: duration({ minMs: 10, maxMs: dayMs })
        .describe('Largest delay after many failures.')
        .prefault('60s'),
      probe_every: duration({ minMs: 1000, maxMs: dayMs })
        .describe(
          'Time between two probes after 401 or 403, and between two tries of a held batch. The time varies ' +
            'by 20 %.',
        )
        .prefault('10m'),
    })
    .prefault({})
    .describe(
      'Delay before the next try after a failure: a random time up to `min`, doubled at each further ' +
        'failure up to `max`. If the service sends Retry-After, that delay is used, up to 10 min.',
    ),
}

type Own<Value> = Value | undefined

/** Checks `tls` as a whole: the key fits the certificate. Null where it is valid. */
export function problemOfTls(tls: {
  ca?: Own<string>
  cert?: Own<string>
  key?: Own<Secret>
  key_passphrase?: Own<Secret>
}): string | null {
  const { ca, cert, key, key_passphrase: passphrase } = tls
  if (cert !== undefined && key === undefined) return 'must contain key as well as cert'
  if (key !== undefined && cert === undefined) return 'must contain cert as well as key'
  return pemPartsProblem({ ca, cert, key: key?.reveal(), passphrase: passphrase?.reveal() })
}

function isProxy(text: string): boolean {
  if (text === 'environment' || text === 'none') return true
  const given = readUrl(text, httpProtocols)
  if (typeof given === 'string') return false
  const { username, password, pathname, search, hash } = given.url
  return username === '' && password === '' && pathname === '/' && search === '' && hash === ''
}

/** What is wrong with the URL of the service, and what to write instead; null where it can be used. */
export function problemOfBaseUrl(text: string): string | null {
  const url = URL.parse(text)
  if (url === null || !httpProtocols.includes(url.protocol))
    return 'must be a URL that begins with https:// or http://, such as https://ingest.example.com'
  const { protocol, host, username, password } = url
  const [path = ''] = text.replace(/^[a-z]+:\/*[^/?#]*/i, '').split(/[?#]/)
  const [operation = ''] = /\/v2(\/telemetry(\/.*)?|\/*)$/i.exec(path) ?? []
  const rest = path.slice(0, path.length - operation.length).replace(/\/+$/, '')
  // The signature covers the normalised and twice encoded path; a path without encoding is the same for all.
  if (!/^[A-Za-z0-9._~/-]*$/.test(rest)) return 'must have a path of letters, digits and . _ ~ - only'
  if (rest.split('/').some((part) => part === '.' || part === '..') || /\/\//.test(rest))
    return 'must have no empty, "." or ".." part in its path'
  const faults = [
    ...(username === '' && password === '' ? [] : ['no user name and no password']),
    ...(/[?#]/.test(text) ? ['no query and no fragment'] : []),
    ...(operation === '' ? [] : ['no /v2 and nothing behind it, which the gateway adds']),
  ]
  if (faults.length === 0) return null
  return `must have ${faults.join(', and ')}: write "${protocol}//${host}${rest}"`
}
