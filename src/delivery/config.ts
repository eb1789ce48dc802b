// config.ts: the section `delivery` of the config.
//
// The options of the section apply to all providers. Each entry of `providers` overrides them for one
// provider. Without the list there is one provider, `default`.

import { z } from 'zod'
import { defaultProvider } from '../domain/ids.ts'
import type { ProviderName } from '../domain/ids.ts'
import { credentialsOptions } from './config-credentials.ts'
import {
  backfillFields,
  backoffFields,
  batchFields,
  fields,
  limitsFields,
  problemOfResponseBytes,
  problemOfTls,
  tlsFields,
} from './config-fields.ts'
import { defaultBackoff } from './delivery-options.ts'
import type { DeliveryOptions, ProviderOptions, ProxyOptions } from './delivery-options.ts'
import { defaultRetryRules } from './policy/retry-delays.ts'

const tls = z.strictObject(tlsFields).partial()
const limits = z.strictObject(limitsFields).partial()

/** The options of one provider. */
const providerSchema = z.strictObject({
  name: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      'must be a name of letters, digits and . _ -, at most 64 of them',
    )
    .describe(
      'The name in sources (`provider`), in the device table and in the spool. If you rename it, payloads that ' +
        'wait stay under the old name: see PROVIDER_UNKNOWN.',
    ),
  base_url: like(fields.base_url, 'base_url'),
  provider_key: fields.provider_key
    .optional()
    .describe('X-Provider-Key of this provider. It distinguishes the providers of one account.'),
  credentials: like(fields.credentials, 'credentials'),
  mode: like(fields.mode, 'mode'),
  batch: over(z.strictObject(batchFields).partial(), 'batch'),
  max_in_flight: like(fields.max_in_flight, 'max_in_flight'),
  timeout: like(fields.timeout, 'timeout'),
  connect_timeout: like(fields.connect_timeout, 'connect_timeout'),
  max_response_bytes: like(fields.max_response_bytes, 'max_response_bytes'),
  compress: like(fields.compress, 'compress'),
  tls: tls.optional().describe('As `delivery.tls`, which it replaces as a whole.'),
  proxy: like(fields.proxy, 'proxy'),
  proxy_auth: like(fields.proxy_auth, 'proxy_auth'),
  errors: over(fields.errors, 'errors'),
  on_repeat: like(fields.on_repeat, 'on_repeat'),
  on_refused_repeat: like(fields.on_refused_repeat, 'on_refused_repeat'),
  backfill: over(z.strictObject(backfillFields).partial(), 'backfill'),
  limits: over(limits, 'limits'),
  backoff: over(z.strictObject(backoffFields).partial(), 'backoff'),
})

/** Replaces the option of the section. */
function like<Schema extends z.ZodType>(schema: Schema, name: string) {
  return schema.optional().describe(`As \`delivery.${name}\`, for this provider.`)
}

/** Merged over the option of the section. */
function over<Schema extends z.ZodType>(schema: Schema, name: string) {
  return schema.optional().describe(`As \`delivery.${name}\`; missing values come from there.`)
}

const sectionSchema = z.strictObject({
  base_url: fields.base_url,
  provider_key: fields.provider_key.optional(),
  credentials: fields.credentials.prefault({ source: 'environment' }),
  providers: z
    .array(providerSchema)
    .min(1)
    .max(64)
    .optional()
    .describe(
      'For an aggregator: the providers whose data is sent. Each has its own connections, credentials ' +
        'and state, so a provider that is refused or hangs does not stop the others. Missing options come ' +
        'from the rest of this section. Sources and the device table assign payloads to providers. A ' +
        'single provider gets all payloads.',
    ),
  batch: z
    .strictObject({
      max_payloads: batchFields.max_payloads.default(500),
      max_bytes: batchFields.max_bytes.prefault('1MiB'),
      linger: batchFields.linger.prefault('1s'),
    })
    .prefault({})
    .describe('Limits of a batch.'),
  max_in_flight: fields.max_in_flight.default(4),
  max_in_flight_total: z
    .int()
    .min(1)
    .max(1024)
    .optional()
    .describe(
      'Batches of all providers that are sent at the same time, at least one for each provider. A provider ' +
        'always has one place, and its equal share while it needs it; the rest is for all. Default: the sum ' +
        'of their `max_in_flight`.',
    ),
  timeout: fields.timeout.prefault('30s'),
  connect_timeout: fields.connect_timeout.prefault('10s'),
  max_response_bytes: fields.max_response_bytes.prefault('16MiB'),
  compress: fields.compress.default('off'),
  tls: tls.prefault({}).describe('Certificates for the connection to the service.'),
  proxy: fields.proxy.default('environment'),
  proxy_auth: fields.proxy_auth.optional(),
  errors: fields.errors.prefault({}),
  on_repeat: fields.on_repeat.default('hold'),
  on_refused_repeat: fields.on_refused_repeat.default('hold'),
  mode: fields.mode.default('batch'),
  backfill: z
    .strictObject({
      after: backfillFields.after.prefault('15m'),
      min_share: backfillFields.min_share.default(0.1),
      max_share: backfillFields.max_share.default(1),
      order: backfillFields.order.default('oldest-first'),
      rotate_every: backfillFields.rotate_every.prefault('1h'),
    })
    .prefault({})
    .describe('After an outage fresh data is sent first. These options control how the backlog follows.'),
  limits: limits
    .prefault({})
    .describe('Limits of the average number of payloads and requests per second. Default: no limit.'),
  backoff: z
    .strictObject({
      min: backoffFields.min.prefault('1s'),
      max: backoffFields.max.prefault('60s'),
      probe_every: backoffFields.probe_every.prefault('10m'),
    })
    .prefault({})
    .describe(
      'Delay before the next try after a failure: a random time up to `min`, doubled at each further ' +
        'failure up to `max`. If the service sends Retry-After, that delay is used, up to 10 min.',
    ),
})

type Section = z.output<typeof sectionSchema>
type ProviderConfig = z.output<typeof providerSchema>

export const deliverySchema = sectionSchema.superRefine((section, context) => {
  for (const { path, message } of problemsOf(section)) context.addIssue({ code: 'custom', path, message })
})

export { problemOfBaseUrl } from './config-fields.ts'
export { proxyFor } from './proxy.ts'

export type DeliveryConfig = z.output<typeof deliverySchema>

type Problem = { path: (string | number)[]; message: string }

/** Rules across several options. */
function problemsOf(section: Section): readonly Problem[] {
  const problems: Problem[] = []
  const check = (path: (string | number)[], message: string | null) => {
    if (message !== null) problems.push({ path, message })
  }
  check(['tls'], problemOfTls(section.tls))
  check(['proxy_auth'], problemOfProxyAuth(section.proxy, section.proxy_auth))
  if (section.mode === 'batch')
    check(
      ['max_response_bytes'],
      problemOfResponseBytes(section.max_response_bytes, section.batch.max_payloads),
    )
  const { providers = [], provider_key: key, max_in_flight_total: total } = section
  if (total !== undefined && total < providers.length)
    check(
      ['max_in_flight_total'],
      `must be at least ${providers.length}, the number of providers, found ${total}: each needs one place`,
    )
  if (providers.length > 0 && key !== undefined)
    check(['provider_key'], 'must be in the entries of providers, or all providers would use the same key')
  for (const [index, own] of providers.entries()) {
    const at = ['providers', index]
    const before = providers.slice(0, index)
    if (before.some(({ name }) => name === own.name))
      check([...at, 'name'], `must be unique, found "${own.name}" twice`)
    if (own.tls) check([...at, 'tls'], problemOfTls(own.tls))
    check([...at, 'proxy_auth'], problemOfProxyAuth(own.proxy ?? section.proxy, own.proxy_auth))
    check([...at, ...responsePathOf(own)], problemOfOwnResponse(own, section))
    const same = before.find((other) => isSameForTheService(own, other, section))
    if (same) check(own.provider_key === undefined ? at : [...at, 'provider_key'], sameAs(same))
  }
  return problems
}

/** Only of a provider that sets one of the options; else the section is at fault. */
function problemOfOwnResponse(own: ProviderConfig, section: Section): string | null {
  const payloadsMax = own.batch?.max_payloads
  if (own.max_response_bytes === undefined && payloadsMax === undefined) return null
  if ((own.mode ?? section.mode) === 'single') return null
  return problemOfResponseBytes(
    own.max_response_bytes ?? section.max_response_bytes,
    payloadsMax ?? section.batch.max_payloads,
  )
}

function responsePathOf(own: ProviderConfig): string[] {
  return own.max_response_bytes === undefined ? ['batch', 'max_payloads'] : ['max_response_bytes']
}

function problemOfProxyAuth(proxy: string, auth: Section['proxy_auth']): string | null {
  return auth !== undefined && (proxy === 'environment' || proxy === 'none')
    ? 'must be used with a proxy that is a URL'
    : null
}

/** Two providers with the same account, address and key: the service could not distinguish them. */
function isSameForTheService(own: ProviderConfig, other: ProviderConfig, section: Section): boolean {
  if (own.credentials !== undefined || other.credentials !== undefined) return false
  const address = (one: ProviderConfig) => one.base_url ?? section.base_url
  return own.provider_key === other.provider_key && address(own) === address(other)
}

function sameAs({ name }: ProviderConfig): string {
  return `must have a provider_key of its own: the service cannot distinguish it from "${name}", which has the same account`
}

/** The names for sources and the device table. */
export function providerNames({ providers }: DeliveryConfig): readonly ProviderName[] {
  return providers?.map(({ name }) => name as ProviderName) ?? [defaultProvider]
}

/** The config in the units of the code. */
export function deliveryOptions(config: DeliveryConfig): DeliveryOptions {
  const providers = config.providers?.map((own) => providerOptions(config, own)) ?? [
    providerOptions(config, { name: defaultProvider, provider_key: config.provider_key }),
  ]
  const sum = providers.reduce((total, { maxInFlight }) => total + maxInFlight, 0)
  return { providers, maxInFlightTotal: config.max_in_flight_total ?? sum }
}

function providerOptions(section: Section, own: ProviderConfig): ProviderOptions {
  const batch = merged(section.batch, own.batch)
  const backfill = merged(section.backfill, own.backfill)
  const backoff = merged(section.backoff, own.backoff)
  const limit = { ...section.limits, ...own.limits }
  const { ca, cert, key, key_passphrase: passphrase } = own.tls ?? section.tls
  return {
    name: own.name as ProviderName,
    baseUrl: own.base_url ?? section.base_url,
    providerKey: own.provider_key ?? null,
    credentials: credentialsOptions(own.credentials ?? section.credentials),
    batch: { payloadsMax: batch.max_payloads, bodyBytesMax: batch.max_bytes, lingerMs: batch.linger },
    maxInFlight: own.max_in_flight ?? section.max_in_flight,
    timeoutMs: own.timeout ?? section.timeout,
    connectTimeoutMs: own.connect_timeout ?? section.connect_timeout,
    responseBytesMax: own.max_response_bytes ?? section.max_response_bytes,
    compress: own.compress ?? section.compress,
    ca: ca ?? null,
    clientCertificate: cert && key ? { cert, key, passphrase: passphrase ?? null } : null,
    proxy: proxyOptions(section, own),
    retryRules: new Map([...defaultRetryRules, ...Object.entries({ ...section.errors, ...own.errors })]),
    onRepeat: own.on_repeat ?? section.on_repeat,
    onRefusedRepeat: own.on_refused_repeat ?? section.on_refused_repeat,
    mode: own.mode ?? section.mode,
    backfill: {
      afterMs: backfill.after,
      shareMin: backfill.min_share,
      shareMax: backfill.max_share,
      order: backfill.order,
      rotateEveryMs: backfill.rotate_every,
    },
    rate: {
      payloadsPerS: limit.payloads_per_second ?? null,
      requestsPerS: limit.requests_per_second ?? null,
    },
    backoff: {
      ...defaultBackoff,
      minMs: backoff.min,
      maxMs: Math.max(backoff.min, backoff.max),
      probeEveryMs: backoff.probe_every,
    },
  }
}

/** That of the section, also for connections that are not to the service. */
export function sectionProxy(section: DeliveryConfig): ProxyOptions {
  return proxyOptions(section, {})
}

/** `auth` belongs to the proxy of the same level. */
function proxyOptions(section: Section, own: Pick<ProviderConfig, 'proxy' | 'proxy_auth'>): ProxyOptions {
  const proxy = own.proxy ?? section.proxy
  const auth = own.proxy === undefined ? (own.proxy_auth ?? section.proxy_auth) : own.proxy_auth
  if (proxy === 'environment' || proxy === 'none') return { from: proxy }
  return { from: 'config', url: proxy, auth: auth ?? null }
}

function merged<Whole extends object>(
  whole: Whole,
  own: { [Name in keyof Whole]?: Whole[Name] | undefined } | undefined,
): Whole {
  const set = Object.entries(own ?? {}).filter(([, value]) => value !== undefined)
  return { ...whole, ...Object.fromEntries(set) }
}
