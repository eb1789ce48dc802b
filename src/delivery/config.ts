// config.ts: the section `delivery` of the config.
//
// The options of the section apply to all providers. Each entry of `providers` overrides them for one
// provider. Without the list there is one provider, `default`.

import { z } from 'zod'
import { defaultProvider } from '../domain/ids.ts'
import type { ProviderName } from '../domain/ids.ts'
import { credentialsOptions } from './config-credentials.ts'
import { problemOfTls, providerKey, sharedFields } from './config-fields.ts'
import { defaultBackoff } from './delivery-options.ts'
import type { DeliveryOptions, ProviderOptions, ProxyOptions } from './delivery-options.ts'
import { defaultRetryRules } from './policy/retry-delays.ts'

/** Without its default, and its members without theirs. */
type Own<Schema> =
  Schema extends z.ZodDefault<infer Inner extends z.ZodType>
    ? Own<Inner>
    : Schema extends z.ZodPrefault<infer Inner extends z.ZodType>
      ? Own<Inner>
      : Schema extends z.ZodOptional<infer Inner extends z.ZodType>
        ? Own<Inner>
        : Schema extends z.ZodObject<infer Shape>
          ? z.ZodObject<OwnShape<Shape>, z.core.$strict>
          : Schema extends z.ZodType
            ? Schema
            : never
type OwnShape<Shape> = { [Name in keyof Shape]: z.ZodOptional<Own<Shape[Name]>> }

/** The same options for a provider: none has a default, and a group needs none of its own. */
function optional<Shape extends Record<string, z.ZodType>>(
  shape: Shape,
  describe: (name: string, isGroup: boolean) => string | undefined,
): OwnShape<Shape> {
  const entries = Object.entries(shape).map(([name, schema]) => {
    let bare: z.ZodType = schema
    while (bare instanceof z.ZodDefault || bare instanceof z.ZodPrefault || bare instanceof z.ZodOptional)
      bare = bare.unwrap() as z.ZodType
    const isGroup = bare instanceof z.ZodObject && name !== 'proxy_auth'
    if (bare instanceof z.ZodObject && isGroup) bare = z.strictObject(optional(bare.shape, () => undefined))
    const text = describe(name, isGroup) ?? schema.description
    return [name, text === undefined ? bare.optional() : bare.optional().describe(text)]
  })
  return Object.fromEntries(entries) as OwnShape<Shape>
}

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
  provider_key: providerKey.describe(
    'X-Provider-Key of this provider. It distinguishes the providers of one account.',
  ),
  ...optional(sharedFields, (name, isGroup) => {
    if (name === 'tls') return 'As `delivery.tls`, which it replaces as a whole.'
    const isMerged = isGroup || name === 'errors'
    return `As \`delivery.${name}\`${isMerged ? '; missing values come from there.' : ', for this provider.'}`
  }),
  proxy_auth: sharedFields.proxy_auth.describe('As `delivery.proxy_auth`, for this provider.'),
})

const sectionSchema = z.strictObject({
  ...sharedFields,
  provider_key: providerKey,
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
  max_in_flight_total: z
    .int()
    .min(1)
    .max(1024)
    .optional()
    .describe(
      'Batches of all providers that are sent at the same time, at least one for each provider. A provider ' +
        'always has one place; the rest is for all. Default: the sum of their `max_in_flight`.',
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
    const same = before.find((other) => isSameForTheService(own, other, section))
    if (same) check(own.provider_key === undefined ? at : [...at, 'provider_key'], sameAs(same))
  }
  return problems
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

/** What the provider sets, over the section. */
function providerOptions(section: Section, own: ProviderConfig): ProviderOptions {
  const all = merged(section, own)
  const { batch, backfill, backoff, limits } = all
  const { ca, cert, key, key_passphrase: passphrase } = own.tls ?? section.tls
  return {
    name: own.name as ProviderName,
    baseUrl: all.base_url,
    providerKey: own.provider_key ?? null,
    credentials: credentialsOptions(own.credentials ?? section.credentials),
    batch: { payloadsMax: batch.max_payloads, bodyBytesMax: batch.max_bytes, lingerMs: batch.linger },
    maxInFlight: all.max_in_flight,
    timeoutMs: all.timeout,
    connectTimeoutMs: all.connect_timeout,
    compress: all.compress,
    ca: ca ?? null,
    clientCertificate: cert && key ? { cert, key, passphrase: passphrase ?? null } : null,
    proxy: proxyOptions(section, own),
    retryRules: new Map([...defaultRetryRules, ...Object.entries(all.errors)]),
    onRepeat: all.on_repeat,
    onRefusedRepeat: all.on_refused_repeat,
    mode: all.mode,
    backfill: {
      afterMs: backfill.after,
      shareMin: backfill.min_share,
      shareMax: backfill.max_share,
      order: backfill.order,
      rotateEveryMs: backfill.rotate_every,
    },
    rate: {
      payloadsPerS: limits.payloads_per_second ?? null,
      requestsPerS: limits.requests_per_second ?? null,
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

/** Groups are merged as well. */
function merged<Whole extends object>(whole: Whole, own: object): Whole {
  const all = { ...whole } as Record<string, unknown>
  for (const [name, value] of Object.entries(own)) {
    const before = all[name]
    all[name] = isGroup(value) && isGroup(before) ? merged(before, value) : (value ?? before)
  }
  return all as Whole
}

function isGroup(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
