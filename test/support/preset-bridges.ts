// preset-bridges.ts: the bridges in the headers of presets that name a server.

import { readFile } from 'node:fs/promises'

const folder = new URL('../../config/presets/', import.meta.url)

/** The lines below `ingest:` of the header, without the comment signs; null for a preset without a bridge. */
export async function bridgeOfPreset(preset: string): Promise<string | null> {
  const lines = (await readFile(new URL(`${preset}.yaml`, folder), 'utf8')).split('\n')
  const start = lines.indexOf('#   ingest:')
  if (start === -1) return null
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('#   '))
  return lines
    .slice(start, end)
    .map((line) => line.slice(4))
    .join('\n')
}

export const bridgePresets = [
  'chirpstack',
  'flespi',
  'flespi-state',
  'hsl-hfp',
  'meshtastic',
  'ovms',
  'roataway',
  'signal-k',
  'teslamate',
  'the-things-stack',
  'traccar-forward',
  'victron-gps',
]
