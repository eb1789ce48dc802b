import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createTaps } from '../../src/ingest/ingest.ts'
import type { Message } from '../../src/domain/message.ts'
import type { MapResult } from '../../src/mapping/mapping.ts'
import { runCli, type CliResult } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'
import { eventually } from '../support/eventually.ts'
import { opsWorld } from '../support/ops-world.ts'

const message = {
  topic: 'telemetry/v1/truck-7',
  bytes: Buffer.from('{"lat":48.1}'),
  qos: 1 as const,
  retain: true,
  dup: false,
  sender: { clientId: 'box-7', userName: 'bob', certificateName: null, identity: null },
  arrivedAt: Date.parse('2026-01-28T15:00:08.250Z'),
}

const result: MapResult = { kind: 'ignored', source: 'trucks', reason: 'no fix' }

/** A daemon with taps, and `tap` on it. */
async function openTaps() {
  const world = opsWorld()
  const taps = createTaps({ clock: world.clock })
  world.ops.attach({ taps })
  await world.ops.start()
  const url = world.ops.url() ?? ''
  const start = async (words: readonly string[], stop = new AbortController().signal) => {
    const ran = runCli(['tap', ...words], { stop })
    await eventually(() => taps.on())
    return { ended: ran }
  }
  return { world, taps, url, start, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() }
}

/** Runs `tap` on a daemon that records `count` messages once the tap is open. */
async function tap(more: readonly string[], count = 1, rest: Partial<Message> = {}): Promise<CliResult> {
  await using daemon = await openTaps()
  const { ended } = await daemon.start(['--url', daemon.url, ...more])
  for (let at = 0; at < count; at += 1) daemon.taps.record({ ...message, ...rest }, result)
  return await ended
}

describe('tap', () => {
  test('prints messages with the result of the mapping', async () => {
    expect(await tap(['--count', '1'])).toEqual({
      status: 0,
      stderr: '',
      stdout:
        '15:00:08.250 UTC  telemetry/v1/truck-7  (QoS 1, retained, client box-7, user bob)\n' +
        '  {"lat":48.1}\n' +
        '  source trucks: ignored: no fix\n\n',
    })
  })

  test('prints the properties of a message of MQTT 5', async () => {
    const mqtt5 = { userProperties: { vin: 'V1' }, properties: { contentType: 'gps', expiryS: 5 } }
    const { stdout } = await tap(['--count', '1'], 1, mqtt5)
    expect(stdout.split('\n')[1]).toBe('  user property vin V1, content type gps, expiry 5 s')
  })

  test('prints each message as a line of JSON and ends after --count', async () => {
    const { status, stdout } = await tap(['--json', '--count', '2', '--device', 'truck-7'], 3)
    const lines = stdout.trim().split('\n')
    expect(status).toBe(0)
    expect(lines).toHaveLength(2)
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ kind: 'message', client: 'box-7', result: 'ignored' })
  })

  test('prints how many messages it did not show', async () => {
    const { stdout } = await tap(['--count', '100'], 120)
    expect(stdout).not.toContain('not shown')
    await using daemon = await openTaps()
    const { ended } = await daemon.start(['--url', daemon.url, '--count', '101'])
    for (let at = 0; at < 120; at += 1) daemon.taps.record(message, result)
    await new Promise(setImmediate)
    daemon.world.clock.move(1000)
    daemon.taps.record(message, result)
    const { status, stdout: shown } = await ended
    expect(status).toBe(0)
    expect(shown).toContain('(20 more messages not shown)')
  })

  test('ends with status 0 on a signal', async () => {
    const stop = new AbortController()
    await using daemon = await openTaps()
    const path = join(await newFolder(), 'gateway.yaml')
    await writeFile(path, `ops: { listen: "${new URL(daemon.url).host}" }\n`)
    const { ended } = await daemon.start(['--config', path], stop.signal)
    stop.abort()
    expect(await ended).toEqual({ status: 0, stdout: '', stderr: '' })
    await eventually(() => !daemon.taps.on())
  })

  test('reports an invalid topic filter', async () => {
    await using daemon = await openTaps()
    const { status, stderr } = await runCli(['tap', '--url', daemon.url, '--topic', 'a/#/b'])
    expect([status, stderr]).toEqual([2, expect.stringContaining('may have "#" only as its last level')])
  })

  test('reports that the daemon stopped', async () => {
    const { start, url, world } = await openTaps()
    const { ended } = await start(['--url', url])
    await world.ops.stop()
    const { status, stderr } = await ended
    expect([status, stderr]).toEqual([1, expect.stringContaining('DAEMON_UNREACHABLE')])
  })
})
