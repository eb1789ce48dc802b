import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { createMappingReader, packagedNames } from '../../src/config/config.ts'
import { createCollector, propose } from '../../src/learn/learn.ts'
import { haveSamples, samplesFolder, samplesIn } from '../support/samples.ts'

const read = createMappingReader({ env: {}, readText: (path) => readFile(path, 'utf8') })

const folders = existsSync(samplesFolder)
  ? readdirSync(samplesFolder).filter((folder) => packagedNames().includes(folder))
  : []

describe.skipIf(!haveSamples)('for recorded messages (TELEMETRY_TEST_DATA)', () => {
  test.each(folders)('of %s its preset is proposed', async (folder) => {
    const collector = createCollector()
    for (const { messages } of samplesIn(folder)) for (const message of messages) collector.take(message)
    const { proposals } = await propose(collector.traffic(), {
      presets: packagedNames(),
      signal: new AbortController().signal,
      async mappingOf(source) {
        const result = await read(source)
        return result.kind === 'config' ? result.config : null
      },
    })
    expect(proposals[0]?.preset).toBe(folder)
  })
})
