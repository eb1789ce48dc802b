import { describe, expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'
import { openMqttServer } from '../support/mqtt-server.ts'

const simulate = (broker: string, words: string, stop?: AbortSignal) =>
  runCli(['simulate', '--broker', broker, ...words.split(' ')], stop ? { stop } : {})

describe('simulate', () => {
  test('ends with status 0 when --count messages are acked, and prints the rate', async () => {
    await using server = await openMqttServer({ onPublish: () => 'ack' })
    const { status, stdout } = await simulate(server.url, '--devices 3 --rate 500 --count 60')
    expect(status).toBe(0)
    expect(stdout).toMatch(
      /^60 published, 60 acknowledged \(.*\/s\), 0 unacknowledged, 0 sent again, 0 reconnects in .*\nlatency p50 .* ms, p99 .* ms, max .* ms\n$/,
    )
  })

  test('prints a JSON line with --json', async () => {
    await using server = await openMqttServer({ onPublish: () => 'ack' })
    const { stdout } = await simulate(server.url, '--rate 500 --count 20 --json')
    expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({
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
      await simulate(server.url, '--rate 500 --count 10 --devices 5 --seed 42')
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
    const { status, stdout } = await simulate(server.url, '--rate 500', stop.signal)
    expect(status).toBe(0)
    expect(stdout.split('\n').at(-3)).toMatch(/ 0 unacknowledged,/)
  })

  test('fails if messages stay unacked for longer than --wait, and still prints its report', async () => {
    await using server = await openMqttServer({ onPublish: (_, soFar) => (soFar > 3 ? 'silence' : 'ack') })
    const { status, stdout, stderr } = await simulate(
      server.url,
      '--devices 1 --rate 500 --count 10 --wait 300ms',
    )
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/^BROKER_UNREACHABLE[^]*cannot store messages/),
    ])
    expect(stdout).toMatch(/^10 published, 3 acknowledged .* 7 unacknowledged/)
  })

  // The timeout of the test is shorter than the wait.
  test.each(['mqtt://me:hush@127.0.0.1:1', 'mqtt://localhost:1'])(
    'fails at once where nothing listens at %s, and names the address without its password',
    async (broker) => {
      const { status, stderr } = await simulate(broker, '--wait 10m')
      expect(status).toBe(1)
      expect(stderr).toMatch(
        /^BROKER_UNREACHABLE\n {2}\d+ messages to mqtt:\/\/(\*\*\*@127\.0\.0\.1|localhost):1 stayed unacknowledged\.\n.*ECONNREFUSED/,
      )
      expect(stderr).not.toContain('hush')
    },
  )
})
