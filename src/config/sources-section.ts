// sources-section.ts: the sections that the mapping is made from, and what only the mapping can judge about them.

import { z } from 'zod'
import { defaultProvider } from '../domain/ids.ts'
import type { ConfigProblem } from '../domain/config-problem.ts'
import {
  clocksSchema,
  compileSources,
  defaultsSchema,
  devicesSchema,
  privacySchema,
  sourcesSchema,
} from '../mapping/config.ts'

export const mappingShape = {
  sources: sourcesSchema,
  devices: devicesSchema,
  defaults: defaultsSchema,
  clocks: clocksSchema,
  privacy: privacySchema,
}

export const mappingSchema = z.object(mappingShape)

/** Topic patterns, paths, units, providers: silent where the schema already has complaints. */
export function checkSources(written: unknown): readonly ConfigProblem[] {
  const mapping = mappingSchema.safeParse(written)
  return mapping.success ? [...compileSources(mapping.data).problems, ...checkProviders(written)] : []
}

/** What of the config says whose data it is. */
const providersSchema = z.object({
  sources: z.array(z.object({ provider: z.string().optional() })),
  devices: z.object({ file: z.string().optional() }).optional(),
  delivery: z.object({ providers: z.array(z.object({ name: z.string() })).optional() }),
})

/** A template over captures, and the device table, can only be judged when a message comes, or the table is read. */
function checkProviders(written: unknown): readonly ConfigProblem[] {
  const parsed = providersSchema.safeParse(written)
  if (!parsed.success) return []
  const { sources, devices, delivery } = parsed.data
  const names = delivery.providers?.map(({ name }) => name) ?? [defaultProvider]
  const known = names.join(', ')
  const mayBeSilent = names.length === 1 || names.includes(defaultProvider) || devices?.file !== undefined
  return sources.flatMap(({ provider }, index): ConfigProblem[] => {
    const path = ['sources', index]
    if (provider === undefined)
      return mayBeSilent
        ? []
        : [{ path, message: `must say whose data it is: \`provider\` is one of ${known}.` }]
    if (provider.includes('{') || names.includes(provider)) return []
    const message = `must be one of delivery.providers (${known}), found "${provider}".`
    return [{ path: [...path, 'provider'], message }]
  })
}

/** Where there is one provider, all data is its own. */
export function withOneProvider<Source extends { provider?: string | undefined }>(
  sources: readonly Source[],
  names: readonly string[],
): Source[] {
  const [name] = names
  if (names.length !== 1 || name === undefined || name === defaultProvider) return [...sources]
  return sources.map((source) => ({ ...source, provider: source.provider ?? name }))
}
