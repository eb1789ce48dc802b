// `publish` against a real daemon and the sandbox.

import { readFile, writeFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { runCli } from '../../support/cli-world.ts'
import { newFolder } from '../../support/folders.ts'
import { startSandbox } from '../../support/pipeline-world.ts'
import { startSpawnedDaemon, writeDaemonConfig } from '../../support/spawned-daemon.ts'

type Step = { kind: string; ok: boolean; what: string; payloadId?: string; requestId?: string }

async function world() {
  const { sandbox, url } = await startSandbox()
  const config = await writeDaemonConfig(await newFolder(), url)
  const daemon = await startSpawnedDaemon(config)
  const publish = async (topic: string, message: string, ...more: string[]) => {
    const argv = ['publish', '--json', '--config', config, '--topic', topic, '--message', message, ...more]
    const { status, stdout, stderr } = await runCli(argv)
    const lines = stdout.split('\n').filter((line) => line !== '')
    return { status, stderr, steps: lines.map((line) => JSON.parse(line) as Step) }
  }
  return { sandbox, config, daemon, publish }
}

describe('publish', () => {
  test('follows a message from its PUBACK to the requestId of the service', async () => {
    const { sandbox, publish, daemon, config } = await world()
    const now = Date.now()
    const { status, steps, stderr } = await publish('a/truck-7', `{"t":${now},"x":48.1,"y":11.5}`)
    expect(stderr).toBe('')
    expect(steps.map(({ kind, ok }) => [kind, ok])).toEqual([
      ['acknowledged', true],
      ['mapped', true],
      ['delivered', true],
    ])
    expect(status).toBe(0)
    expect(steps[2]?.requestId).toMatch(/\S/)
    expect(sandbox.stats().distinctPayloadIds).toBe(1)
    const other = await publish('a/truck-7', 'no json')
    expect(other.steps.map(({ kind, ok }) => [kind, ok])).toEqual([
      ['acknowledged', true],
      ['mapped', false],
    ])
    expect([other.status, other.steps[1]?.what]).toEqual([1, expect.stringContaining('NOT_JSON')])
    const text = await runCli(['publish', '--config', config, '--topic', 'a/b'], {
      stdin: `{"t":${now + 1},"x":48.2,"y":11.6}`,
    })
    expect(text.stdout).toMatch(/^acknowledged .*\nmapped .*1 payload\ndelivered .*requestId \S+\n$/)
    await daemon.kill()
  })

  test('publishes over WebSocket where the daemon has no other listener, and doctor finds the listener', async () => {
    const { url } = await startSandbox()
    const config = await writeDaemonConfig(await newFolder(), url)
    const text = await readFile(config, 'utf8')
    await writeFile(config, text.replace('mqtt://127.0.0.1:0', 'ws://127.0.0.1:0/devices'))
    const daemon = await startSpawnedDaemon(config)
    const message = `{"t":${Date.now()},"x":48.1,"y":11.5}`
    const published = await runCli(['publish', '--config', config, '--topic', 'a/x', '--message', message])
    expect([published.status, published.stdout]).toEqual([0, expect.stringMatching(/^delivered /m)])
    const doctor = await runCli(['doctor', '--config', config])
    expect(doctor.stdout).toMatch(/ws:\/\/127\.0\.0\.1:\d+\/devices accepts connections\./)
    await daemon.kill()
  })

  test('says that a payload waits where the service does not take it in time', async () => {
    const config = await writeDaemonConfig(await newFolder(), 'http://127.0.0.1:1')
    const daemon = await startSpawnedDaemon(config)
    const message = `{"t":${Date.now()},"x":48.1,"y":11.5}`
    const { status, stdout } = await runCli([
      'publish',
      '--config',
      config,
      '--topic',
      'a/x',
      '--message',
      message,
      '--wait',
      '300ms',
    ])
    expect([status, stdout]).toEqual([1, expect.stringMatching(/^waits .*not settled after 300 ms/m)])
    await daemon.kill()
  })

  test('names the broker that does not answer, and refuses a topic with a wildcard', async () => {
    const { publish, daemon } = await world()
    const closed = await publish('a/b', 'x', '--broker', 'mqtt://me:hush@127.0.0.1:1')
    expect(closed.status).toBe(1)
    expect(closed.stderr).toMatch(/BROKER_UNREACHABLE.*127\.0\.0\.1:1.*ECONNREFUSED/)
    expect(closed.stderr).not.toContain('hush')
    expect((await publish('a/#', 'x')).status).toBe(2)
    await daemon.kill()
  })
})
