import { readFileSync } from 'node:fs'
import { describe, expect, test, vi } from 'vitest'
import { eventually } from '../../../support/eventually.ts'
import { useFakeTimers } from '../../../support/fake-timers.ts'
import { openIngest, type IngestWorld } from '../../../support/ingest-world.ts'
import { auto } from '../../../support/memory-intake-spool.ts'
import { publishBytes, type Device } from '../../../support/mqtt-device.ts'

function reasons(world: IngestWorld): string[] {
  return world.events.flatMap((event) => (event.kind === 'client_dropped' ? [event.reason] : []))
}

/** The answers to all PINGREQ so far; everything that was sent before them was read. */
async function ping(device: Device): Promise<void> {
  const answers = (received: Device['received']) => received.filter(({ cmd }) => cmd === 'pingresp').length
  const before = answers(device.received)
  device.send({ cmd: 'pingreq' })
  await device.until((received) => answers(received) > before)
}

async function connected(world: IngestWorld, keepalive: number): Promise<Device> {
  const device = await world.connection(`keepalive ${keepalive}`)
  await device.connect({ keepalive })
  await ping(device)
  return device
}

/** Lets bytes that are on their way arrive. */
async function arrived(world: IngestWorld): Promise<void> {
  const other = await world.device('other')
  await ping(other)
}

describe('a silent connection', () => {
  test('is kept alive by messages alone', async () => {
    useFakeTimers()
    await using world = await openIngest(auto())
    const device = await connected(world, 60)
    for (let count = 1; count <= 5; count += 1) {
      vi.advanceTimersByTime(80_000)
      device.publish({ topic: 't', payload: 'x', messageId: count })
      await device.acked(count)
    }
    expect(device.closed).toBe(false)
    vi.advanceTimersByTime(92_000)
    await device.gone()
    expect(reasons(world)).toEqual(['keepalive_timeout'])
  })

  // The fourth field of /proc/net/tcp with a timer: 02 is keep-alive, and when it fires in 1/100 s.
  test('is asked by TCP only where the client gives no keepalive', async () => {
    await using world = await openIngest(auto())
    await connected(world, 60)
    await connected(world, 0)
    const port = world.port.toString(16).toUpperCase().padStart(4, '0')
    const timers = () =>
      readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .map((line) => line.trim().split(/\s+/))
        .filter(([, local, , state]) => local?.endsWith(`:${port}`) && state === '01')
        .map(([, , , , , timer]) => timer!.split(':'))
    // At first the timer is the one for the acknowledgement of PINGRESP.
    const kinds = () => timers().map(([kind]) => kind)
    await eventually(() => kinds().includes('00') && kinds().includes('02'))
    const kept = timers().filter(([kind]) => kind === '02')
    const seconds = Number.parseInt(kept[0]![1]!, 16) / 100
    expect(seconds).toBeGreaterThan(890)
    expect(seconds).toBeLessThanOrEqual(900)
  })
})

describe('a packet whose end does not arrive', () => {
  const large = publishBytes({ topic: 't', payload: Buffer.alloc(100_000, 120), messageId: 1 })

  test('ends the connection after partial_timeout, whatever the keepalive', async () => {
    useFakeTimers()
    await using world = await openIngest(auto())
    const device = await connected(world, 0)
    device.sendBytes(large.subarray(0, -1))
    await arrived(world)
    expect(world.ingest.counters().partialBytes).toBeGreaterThan(60_000)
    vi.advanceTimersByTime(29_000)
    expect(reasons(world)).toEqual([])
    vi.advanceTimersByTime(3000)
    await device.gone()
    expect(reasons(world)).toEqual(['packet_too_slow'])
    expect(world.ingest.counters().partialBytes).toBe(0)
  })

  test.each([
    ['slower than 256 bytes per second ends the connection', 2500, ['packet_too_slow']],
    ['that is faster is taken', 3000, []],
  ] as const)('%s', async (_what, bytesIn10s, expected) => {
    useFakeTimers()
    await using world = await openIngest(auto())
    const device = await connected(world, 0)
    for (let sent = 0; sent < large.length && reasons(world).length === 0; sent += bytesIn10s) {
      device.sendBytes(large.subarray(sent, sent + bytesIn10s))
      await arrived(world)
      vi.advanceTimersByTime(10_000)
    }
    if (expected.length > 0) await device.gone()
    else await device.acked(1)
    expect(reasons(world)).toEqual(expected)
    expect(world.ingest.counters().partialBytes).toBe(0)
  })

  test('costs no shared memory up to 4 KiB, so a CONNECT always has room', async () => {
    await using world = await openIngest(auto(), { partialBytesMax: 1 })
    const device = await world.connection('slow')
    const hello = Buffer.concat([Buffer.from([0x10, 0x80, 0x80, 2])])
    device.sendBytes(Buffer.concat([hello, Buffer.alloc(4000)]))
    await arrived(world)
    expect(device.closed).toBe(false)
    device.sendBytes(Buffer.alloc(1000))
    await device.gone()
    expect(reasons(world)).toEqual(['partial_packets_full'])
  })
})
