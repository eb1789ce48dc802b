import { describe, expect, test } from 'vitest'
import { createRunningSeals, type RunningSeals } from '../../../src/delivery/policy/running-seals.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { LaneRole, LaneView } from '../../../src/spool/spool.ts'

const id = 1 as LaneId
const limits = { payloadsMax: 10, bodyBytesMax: 1000 }
const lane = (pending: number, pendingBytes = 0, kind: 'live' | 'retry' | 'backfill' = 'live') =>
  ({ id, role: { kind } as LaneRole, pending, pendingBytes }) as LaneView

function run(seals: RunningSeals) {
  const seal = seals.begin(id)
  seal.runs()
  return seal
}

describe('another seal of a lane starts', () => {
  test('only with a full batch behind those that run', () => {
    const seals = createRunningSeals({ together: true })
    expect(seals.allow(lane(1), limits)).toBe(true)
    const first = run(seals)
    expect(seals.allow(lane(19), limits)).toBe(false)
    expect(seals.allow(lane(20), limits)).toBe(true)
    expect(seals.allow(lane(20, 0, 'backfill'), limits)).toBe(true)
    const second = run(seals)
    expect(seals.of(id)).toBe(2)
    expect(seals.allow(lane(20), limits)).toBe(false)
    expect(seals.allow(lane(3, 3000), limits)).toBe(true)
    first.ended()
    first.ended()
    expect(seals.of(id)).toBe(1)
    expect(seals.allow(lane(20), limits)).toBe(true)
    second.ended()
    expect(seals.isAny()).toBe(false)
    expect(seals.allow(lane(1), limits)).toBe(true)
  })

  test('never beside one that is held', () => {
    const seals = createRunningSeals({ together: true })
    const first = run(seals)
    const held = seals.begin(id)
    expect(seals.allow(lane(1000), limits)).toBe(false)
    first.ended()
    expect(seals.allow(lane(1000), limits)).toBe(false)
    expect(seals.of(id)).toBe(1)
    held.ended()
    expect(seals.allow(lane(1000), limits)).toBe(true)
    expect(seals.isAny()).toBe(false)
  })

  test.each([
    { why: 'of a retry lane', together: true, kind: 'retry' as const },
    { why: 'with rate limits', together: false, kind: 'live' as const },
  ])('one after the other $why', ({ together, kind }) => {
    const seals = createRunningSeals({ together })
    const first = run(seals)
    expect(seals.allow(lane(100, 0, kind), limits)).toBe(false)
    first.ended()
    expect(seals.allow(lane(100, 0, kind), limits)).toBe(true)
  })
})
