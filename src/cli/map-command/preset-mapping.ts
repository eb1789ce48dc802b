// preset-mapping.ts: the mapping of `map --preset`: a source with this preset and nothing else.

import { GatewayError } from '../../std/gateway-error.ts'
import { quote } from '../../std/quote.ts'
import { createMappingReader } from '../../config/config.ts'
import type { MappingConfig } from '../../mapping/config.ts'
import type { CommandIo } from '../terminal/terminal.ts'

/** Reads a file as UTF-8. */
export type ReadText = (path: string) => Promise<string>

type PresetOptions = { preset: string; model?: string | undefined; sourceTopic?: string | undefined }

/** Rejects with CONFIG_INVALID. */
export async function presetMapping(
  { preset, model, sourceTopic }: PresetOptions,
  { env }: Pick<CommandIo, 'env'>,
  readText: ReadText,
): Promise<MappingConfig> {
  const read = createMappingReader({ env, readText })
  const source = {
    name: 'preset',
    preset,
    ...(model === undefined ? {} : { model }),
    ...(sourceTopic === undefined ? {} : { topic: sourceTopic }),
  }
  const found = await read(source)
  if (found.kind === 'config') return found.config
  // Another topic may lack the captures that name the device in the topic of the preset.
  const named = sourceTopic?.includes('{device}') ? await read({ ...source, device: '{device}' }) : found
  if (named.kind === 'config') return named.config
  throw new GatewayError('CONFIG_INVALID', {
    what: `Cannot use the preset ${quote(preset, 80)}.`,
    why: found.problems.map(({ message }) => message.replace(/^sources\[0\]\./, '')).join('\n'),
    act: 'Correct the options, or give a config with --config.',
  })
}
