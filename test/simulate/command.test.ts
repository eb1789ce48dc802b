import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { GatewayError } from '../../src/std/gateway-error.ts'
import { simulateCommand } from '../../src/cli/simulate-command.ts'
import type { ExitStatus } from '../../src/cli/terminal/terminal.ts'
import { openMqttServer } from '../support/mqtt-server.ts'

async function run(argv: string[], stop: AbortSignal = new AbortController().signal) {
  const stdout = new PassThrough()
  const io = {
    stdin: new PassThrough(),
    stdout,
    stderr: new PassThrough(),
    env: {},
    stop,
    onHangUp: () => undefined,
    endWithReader: () => undefined,
  }
  let status: ExitStatus | null = null
  const command = simulateCommand(io, (ended) => void (status = ended))
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
  const thrown: unknown = await command.parseAsync(argv, { from: 'user' }).then(
    () => null,
    (error: unknown) => error,
  )
  stdout.end()
  const lines = (await text(stdout)).split('\n').filter((line) => line !== '')
  return { status, thrown, lines }
}

describe('simulate', () => {
  test('ends with status 0 when --count messages are acked, and prints the rate', async () => {
    await using server = await openMqttServer({ onPublish: () => 'ack' })
    const { status, lines } = await run([
      '--broker',
      server.url,
      '--devices',
      '3',
      '--rate',
      '500',
      '--count',
      '60',
    ])
    expect(status).toBe(0)
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(
      /^60 published, 60 acknowledged \(.*\/s\), 0 unacknowledged, 0 sent again, 0 reconnects in /,
    )
    expect(lines[1]).toMatch(/^latency p50 .* ms, p99 .* ms, max .* ms$/)
  })

  test('prints a JSON line with --json', async () => {
    await using server = await openMqttServer({ onPublish: () => 'ack' })
    const { lines } = await run(['--broker', server.url, '--rate', '500', '--count', '20', '--json'])
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({
      kind: 'result',
      devices: 10,
      published: 20,
      acked: 20,
      unacked: 0,
      latency: { count: 20 },
    })
  })

  test('drives the same tracks again with the same --seed', async () => {
    const places = async () => {
      await using server = await openMqttServer({ onPublish: () => 'ack' })
      await run(['--broker', server.url, '--rate', '500', '--count', '10', '--devices', '5', '--seed', '42'])
      return server.received
        .map(({ payload }) => JSON.parse(payload) as { device: string; seq: number; gps: { lat: number } })
        .filter(({ seq }) => seq === 1)
        .map(({ device, gps }) => `${device} ${gps.lat}`)
        .sort()
    }
    expect(await places()).toEqual(await places())
  })

  test('without --count runs until it is stopped, and then waits for outstanding acks', async () => {
    const stop = new AbortController()
    await using server = await openMqttServer({
      onPublish: () => {
        if (server.received.length === 20) stop.abort()
        return 'ack'
      },
    })
    const { status, lines } = await run(['--broker', server.url, '--rate', '500'], stop.signal)
    expect(status).toBe(0)
    expect(lines.at(-2)).toMatch(/ 0 unacknowledged,/)
  })

  test('fails if messages stay unacked for longer than --wait, and still prints its report', async () => {
    await using server = await openMqttServer({ onPublish: (_, soFar) => (soFar > 3 ? 'silence' : 'ack') })
    const { status, thrown, lines } = await run([
      '--broker',
      server.url,
      '--devices',
      '1',
      '--rate',
      '500',
      '--count',
      '10',
      '--wait',
      '300ms',
    ])
    expect(status).toBeNull()
    expect(thrown).toBeInstanceOf(GatewayError)
    expect(thrown).toMatchObject({
      code: 'BROKER_UNREACHABLE',
      why: expect.stringMatching(/cannot store messages/),
    })
    expect(lines[0]).toMatch(/^10 published, 3 acknowledged .* 7 unacknowledged/)
  })

  test('fails at once when there is no broker, naming the address without its password', async () => {
    // The timeout of the test is shorter than the wait.
    const { thrown } = await run(['--broker', 'mqtt://me:hush@127.0.0.1:1', '--wait', '10m'])
    expect(thrown).toMatchObject({
      code: 'BROKER_UNREACHABLE',
      what: expect.stringMatching(/^\d+ messages to mqtt:\/\/\*\*\*@127\.0\.0\.1:1 stayed unacknowledged\.$/),
      why: expect.stringMatching(/ECONNREFUSED/),
    })
    expect(String(thrown)).not.toContain('hush')
  })

  test('fails at once when nothing listens on any address of a name', async () => {
    const { thrown } = await run(['--broker', 'mqtt://localhost:1', '--wait', '10m'])
    expect(thrown).toMatchObject({ why: expect.stringMatching(/ECONNREFUSED/) })
  })
})
