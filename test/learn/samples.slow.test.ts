import { existsSync, readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { packagedNames } from '../../src/config/config.ts'
import { haveSamples, samplesFolder, samplesIn } from '../support/samples.ts'
import { learned } from './learned.ts'

const folders = existsSync(samplesFolder)
  ? readdirSync(samplesFolder).filter((folder) => packagedNames().includes(folder))
  : []

describe.skipIf(!haveSamples)('for recorded messages (TELEMETRY_TEST_DATA)', () => {
  test.each(folders)('of %s its preset is proposed', async (folder) => {
    const { proposals } = await learned(samplesIn(folder).flatMap(({ messages }) => messages))
    expect(proposals[0]?.preset).toBe(folder)
  })
})
