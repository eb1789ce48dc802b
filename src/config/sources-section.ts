// sources-section.ts: the sections of the mapping, the checks on them that the schema cannot express, and
// where the device table is.

import { resolve } from 'node:path'
import { z } from 'zod'
import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import { embeddedBrokerName } from '../domain/message.ts'
import type { ConfigProblem } from '../std/config-problem.ts'
import {
  clocksSchema,
  defaultsSchema,
  devicesSchema,
  plausibilitySchema,
  privacySchema,
  sourcesSchema,
} from '../mapping/config.ts'
import { compileSources } from '../mapping/mapping.ts'

export const mappingShape = {
  sources: sourcesSchema,
  devices: devicesSchema,
  defaults: defaultsSchema,
  clocks: clocksSchema,
  privacy: privacySchema,
  plausibility: plausibilitySchema,
}

export const mappingSchema = z.object(mappingShape)

/** Checks topic patterns, paths, units and providers. Finds nothing where the schema has problems already. */
export function checkSources(written: unknown): readonly ConfigProblem[] {
  const mapping = mappingSchema.safeParse(written)
  return mapping.success
    ? [...compileSources(mapping.data).problems, ...checkProviders(written), ...checkFrom(written)]
    : []
}

/** The options that decide on the provider. */
const providersSchema = z.object({
  sources: z.array(z.object({ provider: z.string().optional() })),
  devices: z.object({ file: z.string().optional() }).optional(),
  delivery: z.object({ providers: z.array(z.object({ name: z.string() })).optional() }),
})

/** A provider with captures, and those of the device table, can be checked only later. */
function checkProviders(written: unknown): readonly ConfigProblem[] {
  const parsed = providersSchema.safeParse(written)
  if (!parsed.success) return []
  const { sources, devices, delivery } = parsed.data
  const names = delivery.providers?.map(({ name }) => name) ?? [defaultProvider]
  const known = names.join(', ')
  const isOptional = names.length === 1 || names.includes(defaultProvider) || devices?.file !== undefined
  return sources.flatMap(({ provider }, index): ConfigProblem[] => {
    const path = ['sources', index]
    if (provider === undefined)
      return isOptional ? [] : [{ path, message: `needs \`provider\`: one of ${known}.` }]
    if (provider.includes('{') || names.includes(provider)) return []
    const message = `must be one of delivery.providers (${known}), found "${provider}".`
    return [{ path: [...path, 'provider'], message }]
  })
}

const fromSchema = z.object({
  sources: z.array(z.object({ from: z.array(z.string()).optional() })),
  ingest: z.object({ bridges: z.array(z.object({ name: z.string() })).optional() }).optional(),
})

/** A name that is none would be a source without messages. */
function checkFrom(written: unknown): readonly ConfigProblem[] {
  const { data } = fromSchema.safeParse(written)
  if (data === undefined) return []
  const names = [embeddedBrokerName, ...(data.ingest?.bridges ?? []).map(({ name }) => name)]
  return data.sources.flatMap(({ from = [] }, index) =>
    from.flatMap((name, at): ConfigProblem[] => {
      if (names.includes(name)) return []
      const message = `must be one of ${names.join(', ')}, found "${name}". It names ingest.bridges, or the broker of the gateway.`
      return [{ path: ['sources', index, 'from', at], message }]
    }),
  )
}

/** The only provider is that of all sources. */
export function withOneProvider<Source extends { provider?: string | undefined }>(
  sources: readonly Source[],
  names: readonly string[],
): Source[] {
  const [name] = names
  if (names.length !== 1 || name === undefined || name === defaultProvider) return [...sources]
  return sources.map((source) => ({ ...source, provider: source.provider ?? name }))
}

/** Where the device table is and what it may name; read also from a config with problems in other options. */
export type DevicesPlace = {
  file: string
  /** Null where the config does not say it clearly: then providers of the table are not checked. */
  providers: readonly ProviderName[] | null
  /** Undefined likewise. */
  profiles: readonly string[] | undefined
}

export const devicesPlaceSchema = z.object({
  devices: z.object({ file: z.string().optional() }).nullish(),
  delivery: z.object({ providers: z.unknown().optional() }).nullish(),
  privacy: z.object({ profiles: z.unknown().optional() }).nullish(),
})

const namedSchema = z.array(z.looseObject({ name: z.string() }))

/** `folder`: of the config. */
export function devicesPlaceOf(
  { devices, delivery, privacy }: z.output<typeof devicesPlaceSchema>,
  folder: string,
): DevicesPlace | null {
  if (devices?.file === undefined) return null
  return {
    file: resolve(folder, devices.file),
    providers: providersOf(delivery?.providers),
    profiles: profilesOf(privacy?.profiles),
  }
}

function providersOf(written: unknown): DevicesPlace['providers'] {
  if (written === undefined) return [defaultProvider]
  const { data } = namedSchema.safeParse(written)
  return data?.map(({ name }) => name as ProviderName) ?? null
}

function profilesOf(written: unknown): DevicesPlace['profiles'] {
  if (written === undefined) return []
  return typeof written === 'object' && written !== null ? Object.keys(written) : undefined
}
