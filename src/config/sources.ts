// sources.ts: the sections that the mapping is made from, and what only the mapping can judge about them.

import { z } from 'zod'
import type { ConfigProblem } from '../domain/problem.ts'
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

/** Topic patterns, paths, units: silent where the schema already has complaints. */
export function checkSources(written: unknown): readonly ConfigProblem[] {
  const mapping = mappingSchema.safeParse(written)
  return mapping.success ? compileSources(mapping.data).problems : []
}
