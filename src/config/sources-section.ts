// sources-section.ts: the sections of the mapping, and the checks on them that the schema cannot express.

import { z } from 'zod'
import { defaultProvider } from '../domain/ids.ts'
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
  return mapping.success ? [...compileSources(mapping.data).problems, ...checkProviders(written)] : []
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

/** The only provider is that of all sources. */
export function withOneProvider<Source extends { provider?: string | undefined }>(
  sources: readonly Source[],
  names: readonly string[],
): Source[] {
  const [name] = names
  if (names.length !== 1 || name === undefined || name === defaultProvider) return [...sources]
  return sources.map((source) => ({ ...source, provider: source.provider ?? name }))
}
