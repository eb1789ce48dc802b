import { join } from 'node:path'
import { writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { newFolder } from '../../support/folders.ts'
import { messageOf, startPipeline, topicOf } from '../../support/pipeline-world.ts'
import { runCli } from '../../support/cli-world.ts'

async function pipeline() {
  const folder = await newFolder()
  const pipeline = await startPipeline({ folder })
  const device = await pipeline.device('truck-1')
  device.publish({ topic: topicOf('truck-1'), payload: 'no json', messageId: 1 })
  device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 2 })
  device.publish({ topic: 'other', payload: messageOf(2), messageId: 3 })
  await device.acked(3)
  return { folder, url: pipeline.gateway.addresses.control }
}

describe('commands on the running daemon', () => {
  test('dead-letters remap prints the result, and with --dry-run the expected one', async () => {
    const { url } = await pipeline()
    const dry = await runCli(['dead-letters', 'remap', '--dry-run', '--reason', 'NOT_JSON', '--url', url])
    expect([dry.status, dry.stdout]).toEqual([
      0,
      '1 message would map to 0 payloads.\n  1 cannot be mapped: NOT_JSON\nNothing was changed.\n',
    ])
    const real = await runCli(['dead-letters', 'remap', '--json', '--url', url])
    expect(JSON.parse(real.stdout)).toMatchObject({
      deadLetters: 2,
      stillRefused: { NOT_JSON: 1, NO_SOURCE: 1 },
    })
  })

  test('reload prints the result, or every problem with its position and status 2', async () => {
    const { url, folder } = await pipeline()
    const fine = await runCli(['reload', '--url', url])
    expect([fine.status, fine.stdout.startsWith('The mapping is in force: 1 source, loaded in')]).toEqual([
      0,
      true,
    ])
    await writeFile(join(folder, 'gateway.yaml'), 'sources: [{ name: a }]\n')
    const wrong = await runCli(['reload', '--url', url])
    expect(wrong.status).toBe(2)
    expect(wrong.stderr).toMatch(/^CONFIG_INVALID\n/)
    expect(wrong.stderr).toMatch(/gateway\.yaml:1:\d+ +sources\[0\]\.topic/)
  })

  test('devices prints names, messages and clocks', async () => {
    const { url } = await pipeline()
    const { status, stdout } = await runCli(['devices', '--url', url])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^truck-1 +not listed +sending +just now +.* behind, or late +connected$/m)
  })
})
