// preset-mapping.ts: the mapping of one source with a packaged preset; `own` overrides its options.

import { createMappingReader, type LoadCasesDeps } from '../../src/config/case-files.ts'
import { requireConfig } from '../../src/config/config-error.ts'
import type { MappingConfig } from '../../src/mapping/config.ts'

export async function loadPresetMapping(
  preset: string,
  deps: LoadCasesDeps,
  own: Readonly<Record<string, unknown>> = {},
): Promise<MappingConfig> {
  const result = await createMappingReader(deps)({ name: preset, ...own, preset })
  return requireConfig(preset, result).config
}
