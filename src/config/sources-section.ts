// sources-section.ts: the sections of the mapping, the checks on them that the schema cannot express, and
// where the device table is.

import { resolve } from 'node:path'
import { z } from 'zod'
import { defaultProvider, type ProviderName } from '../domain/ids.ts'
import { embeddedBrokerName } from '../domain/message.ts'
import type { ConfigProblem } from '../std/config-problem.ts'
import { meantText } from '../std/nearest-word.ts'
import { filePath } from '../std/schema.ts'
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

/** Checks topic patterns, paths and units of a mapping that the schema accepts. */
export function checkSources(written: unknown): readonly ConfigProblem[] {
  const mapping = mappingSchema.safeParse(written)
  return mapping.success ? compileSources(mapping.data).problems : []
}

/** What is no list of names, or no name, is a problem of the schema. */
const anyList = z.array(z.unknown()).catch([])
const named = z.object({ name: z.string() })
const namesSchema = z.object({
  sources: anyList,
  devices: z.object({ file: z.unknown().optional() }).catch({}),
  delivery: z.object({ providers: z.unknown().optional() }).catch({}),
  ingest: z.object({ bridges: anyList.optional() }).catch({}),
})

/** Checks the names that sources use of other sections. Reads them also where other options have problems. */
export function checkNames(written: unknown): readonly ConfigProblem[] {
  const { data } = namesSchema.safeParse({ devices: {}, delivery: {}, ingest: {}, ...Object(written) })
  if (data === undefined) return []
  const bridges = (data.ingest.bridges ?? []).flatMap((bridge) => named.safeParse(bridge).data?.name ?? [])
  return [
    ...checkProviders(data.sources, providersOf(data.delivery.providers), data.devices.file !== undefined),
    ...checkFrom(data.sources, [embeddedBrokerName, ...bridges]),
  ]
}

const providerOf = z.object({ provider: z.string().optional() })

/** A provider with captures, and those of the device table, can be checked only later. */
function checkProviders(
  sources: readonly unknown[],
  names: readonly string[] | null,
  hasTable: boolean,
): readonly ConfigProblem[] {
  if (names === null) return []
  const known = names.join(', ')
  const isOptional = names.length === 1 || names.includes(defaultProvider) || hasTable
  return sources.flatMap((source, index): ConfigProblem[] => {
    const path = ['sources', index]
    const { data } = providerOf.safeParse(source)
    if (data === undefined) return []
    const { provider } = data
    if (provider === undefined)
      return isOptional ? [] : [{ path, message: `needs \`provider\`: one of ${known}.` }]
    if (provider.includes('{') || names.includes(provider)) return []
    const message = `must be one of delivery.providers (${known}), found "${provider}".${meantText(provider, names)}`
    return [{ path: [...path, 'provider'], message }]
  })
}

const fromOf = z.object({ from: z.array(z.string()).optional() })

/** A name that is none would be a source without messages. */
function checkFrom(sources: readonly unknown[], names: readonly string[]): readonly ConfigProblem[] {
  return sources.flatMap((source, index) =>
    (fromOf.safeParse(source).data?.from ?? []).flatMap((name, at): ConfigProblem[] => {
      if (names.includes(name)) return []
      const message =
        `must be one of ${names.join(', ')}, found "${name}".${meantText(name, names)} ` +
        'It names ingest.bridges, or the broker of the gateway.'
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
  devices: z.object({ file: filePath().optional() }).nullish(),
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
