import { describe, expect, test } from 'vitest'
import { createHourOffsets } from '../../src/app/device-monitor/hour-offsets.ts'
import type { State } from '../../src/domain/condition-state.ts'

const now = Date.UTC(2026, 4, 4, 12)
const hourMs = 3_600_000
const clock = {
  skewMs: 5 * hourMs,
  spreadMs: 1000,
  messages: 40,
  messagesSince: 15,
  lastSeen: now,
  sender: null,
}

function lookAt(clocks: readonly Partial<typeof clock>[]): State[] {
  const offsets = createHourOffsets(now)
  clocks.forEach((one, index) => offsets.add(`truck-${index}`, { ...clock, ...one }))
  return offsets.states()
}

describe('a clock that is off by whole hours', () => {
  test.each([
    [5 * hourMs, 5 * hourMs],
    [-2 * hourMs, -2 * hourMs],
    [5.5 * hourMs, 5.5 * hourMs],
    [hourMs + 50_000, hourMs],
  ])('is seen at a skew of %d ms', (skewMs, offsetMs) => {
    expect(lookAt([{ skewMs }, { skewMs }])).toEqual([
      { code: 'DEVICES_HOURS_OFF', offsetMs, devices: 2, example: 'truck-0' },
    ])
  })

  test.each([
    ['fewer messages since our own clock was corrected', { messagesSince: 14 }],
    ['messages that do not agree, as those of a backlog', { spreadMs: 121_000 }],
    ['a skew beside the hour', { skewMs: 5 * hourMs + 61_000 }],
    ['half an hour', { skewMs: hourMs / 2 }],
    ['more hours than there are zones', { skewMs: 15 * hourMs }],
    ['a device that was silent for more than a day', { lastSeen: now - 25 * hourMs }],
  ])('is not seen with %s', (_what, one) => {
    expect(lookAt([one])).toEqual([])
  })
})
