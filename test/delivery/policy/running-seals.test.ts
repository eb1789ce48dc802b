import { expect, test } from 'vitest'
import { createRunningSeals } from '../../../src/delivery/policy/running-seals.ts'
import type { LaneId } from '../../../src/domain/ids.ts'
import type { LaneRole, LaneView } from '../../../src/spool/spool.ts'

const limits = { payloadsMax: 10, bodyBytesMax: 1000 }
const lane = (pending: number, pendingBytes = 0, kind: 'live' | 'retry' | 'backfill' = 'live') =>
  ({ id: 1 as LaneId, role: { kind } as LaneRole, pending, pendingBytes }) as LaneView

test('another seal of a lane starts only with a full batch behind those that run', () => {
  const seals = createRunningSeals()
  expect(seals.allow(lane(1), limits)).toBe(true)
  seals.began(1 as LaneId)
  expect(seals.allow(lane(19), limits)).toBe(false)
  expect(seals.allow(lane(20), limits)).toBe(true)
  expect(seals.allow(lane(20, 0, 'backfill'), limits)).toBe(true)
  seals.began(1 as LaneId)
  expect(seals.of(1 as LaneId)).toBe(2)
  expect(seals.allow(lane(20), limits)).toBe(false)
  expect(seals.allow(lane(3, 3000), limits)).toBe(true)
  seals.ended(1 as LaneId)
  expect(seals.allow(lane(20), limits)).toBe(true)
  seals.ended(1 as LaneId)
  expect(seals.isAny()).toBe(false)
  expect(seals.allow(lane(1), limits)).toBe(true)
})

test('of a retry lane one seal runs at a time: what is behind it may not be due', () => {
  const seals = createRunningSeals()
  seals.began(1 as LaneId)
  expect(seals.allow(lane(100, 0, 'retry'), limits)).toBe(false)
  seals.ended(1 as LaneId)
  expect(seals.allow(lane(100, 0, 'retry'), limits)).toBe(true)
})
