import { describe, expect, test } from 'vitest'
import { createTaps, type TapEntry } from '../../../src/ingest/intake/message-tap.ts'
import { systemClock } from '../../../src/std/clock.ts'
import { openIngest } from '../../support/ingest-world.ts'
import { createMemoryIntakeSpool } from '../../support/memory-intake-spool.ts'

const anything = { device: null, topic: null, source: null }

function openTap(taps: ReturnType<typeof createTaps>, filter: Parameters<typeof taps.open>[0] = anything) {
  const entries: TapEntry[] = []
  const opened = taps.open(filter, () => {
    queueMicrotask(() => opened.kind === 'open' && entries.push(...opened.reader.take()))
  })
  if (opened.kind !== 'open') throw new Error(`not open: ${opened.kind}`)
  return { entries, close: opened.reader.close }
}

describe('a tap', () => {
  test('shows each message once, as it arrived, with its result, and delays no ack', async () => {
    const taps = createTaps({ clock: systemClock })
    await using world = await openIngest(createMemoryIntakeSpool({ commits: 'auto' }), { tap: taps })
    const tap = openTap(taps)
    const device = await world.device('box-7')
    for (const [index, payload] of ['one', 'ignore', 'bad'].entries())
      device.publish({ topic: `a/${index}`, payload, messageId: index + 1 })
    await device.acked(3)
    expect(
      tap.entries.map((entry) =>
        entry.kind === 'message'
          ? [entry.topic, entry.bytes.toString(), entry.sender.clientId, entry.result.kind]
          : [],
      ),
    ).toEqual([
      ['a/0', 'one', 'box-7', 'payloads'],
      ['a/1', 'ignore', 'box-7', 'ignored'],
      ['a/2', 'bad', 'box-7', 'unmappable'],
    ])
  })

  test('shows nothing after close', async () => {
    const taps = createTaps({ clock: systemClock })
    await using world = await openIngest(createMemoryIntakeSpool({ commits: 'auto' }), { tap: taps })
    const [first, second] = [openTap(taps), openTap(taps, { ...anything, device: 'box-7' })]
    first.close()
    const device = await world.device('box-7')
    device.publish({ topic: 'a', payload: 'one' })
    await device.acked(1)
    expect([first.entries.length, second.entries.length]).toEqual([0, 1])
    second.close()
    expect(taps.on()).toBe(false)
  })
})
