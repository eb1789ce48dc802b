// The bridge in the header of each preset works as it stands.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { packagedNames } from '../../src/config/config.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { bridgeOfPreset, bridgePresets } from '../support/preset-bridges.ts'

describe('the bridge in the header of a preset', () => {
  test('is there for each server', async () => {
    const found = await Promise.all(
      packagedNames().map(async (name) => ((await bridgeOfPreset(name)) ? [name] : [])),
    )
    expect(found.flat()).toEqual(bridgePresets)
  })

  test.each(bridgePresets)(
    'of %s is valid as it stands, and delivers what the preset reads',
    async (preset) => {
      const block = (await bridgeOfPreset(preset)) ?? ''
      const path = join(await newFolder(), 'gateway.yaml')
      await writeFile(path, `${block}\ndelivery: { base_url: http://127.0.0.1:8081 }\n`)
      const names = [...block.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = '']) => name)
      const env = Object.fromEntries(names.map((name) => [name, 'secret']))
      const { status, stdout, stderr } = await runCli(['check', '--json', '--config', path], { env })
      expect([status, stderr]).toEqual([0, ''])
      const { config, warnings } = JSON.parse(stdout) as {
        config: Record<'bridges' | 'sources', string[]>
        warnings: { what: string }[]
      }
      expect([config.bridges.length, config.sources.length]).toEqual([1, 1])
      const misfits = warnings
        .map(({ what }) => what)
        .filter((what) => /gets no messages|no source takes/.test(what))
      expect(misfits).toEqual([])
      const losesMessages = warnings.some(({ what }) => /qos: 0/.test(what))
      expect(losesMessages).toBe(['hsl-hfp', 'roataway', 'the-things-stack'].includes(preset))
    },
  )
})
