import { array, assert, constantFrom, integer, nat, property, tuple } from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  otherNumber,
  planShares,
  withoutMember,
  type MemberId,
  type SharesRecord,
} from '../../../src/ingest/jetstream/members/partition-shares.ts'

const a: MemberId = { name: 'a', instance: '1' }
const b: MemberId = { name: 'b', instance: '1' }
const c: MemberId = { name: 'c', instance: '1' }
const empty: SharesRecord = { members: [], owners: [] }

type More = {
  isAccepting?: boolean
  dead?: readonly MemberId[]
  settled?: readonly number[]
  partitions?: number
}

function plan(
  record: SharesRecord,
  me: MemberId,
  { isAccepting = true, dead = [], settled = [], partitions = 4 }: More = {},
) {
  const isDead = (member: MemberId) =>
    dead.some(({ name, instance }) => name === member.name && instance === member.instance)
  return planShares(record, { me, isAccepting, partitions, isDead, settled: new Set(settled) })
}

describe('shares of partitions', () => {
  test('a member that comes gets half, after the other one settled it', () => {
    const alone = plan(empty, a).next
    const joined = plan(alone, b)
    expect(joined.next).toEqual({ members: [a, b], owners: [a, a, a, a] })
    const asked = plan(joined.next, a)
    expect(asked).toEqual({ next: joined.next, toSettle: [2, 3] })
    const freed = plan(joined.next, a, { settled: [2, 3] })
    expect(freed.next.owners).toEqual([a, a, null, null])
    expect(plan(freed.next, b).next.owners).toEqual([a, a, b, b])
  })

  test('a member with another number of partitions waits for those that live', () => {
    const record = { members: [a, b], owners: [a, a, b, b] }
    const again = { name: 'b', instance: '2' }
    const seen = (me: MemberId, partitions: number, dead: readonly MemberId[] = []) =>
      otherNumber(record, { me, partitions, isDead: (member) => dead.includes(member) })
    expect(seen(c, 8)).toEqual({ member: 'a', partitions: 4 })
    expect(seen(c, 8, [a])).toEqual({ member: 'b', partitions: 4 })
    expect(seen(again, 2, [a])).toBeNull()
    expect(seen(c, 8, [a, b])).toBeNull()
    expect(seen(c, 4)).toBeNull()
    expect(otherNumber(empty, { me: c, partitions: 8, isDead: () => false })).toBeNull()
  })

  test('whatever the order of turns, stops and deaths, it becomes even and stays, and no turn takes what is owned', () => {
    assert(
      property(
        integer({ min: 1, max: 9 }),
        array(tuple(nat(2), constantFrom('turn', 'settle', 'leave', 'die', 'pause')), {
          maxLength: 60,
        }),
        (partitions, steps) => {
          const all = [a, b, c]
          let record = empty
          const dead = new Set<MemberId>()
          const paused = new Set<MemberId>()
          const turn = (me: MemberId, settles: boolean) => {
            if (dead.has(me)) return
            const view = { isAccepting: !paused.has(me), dead: [...dead], partitions }
            const before = record
            const { next, toSettle } = plan(record, me, view)
            for (const [index, owner] of next.owners.entries()) {
              const had = before.owners[index] ?? null
              const isFree = had === null || dead.has(had) || !before.members.includes(had)
              expect(owner === had || (isFree && (owner === me || owner === null))).toBe(true)
            }
            record = next
            if (settles && toSettle.length > 0) record = plan(record, me, { ...view, settled: toSettle }).next
          }
          for (const [who, what] of steps) {
            const me = all[who]!
            if (what === 'leave') record = withoutMember(record, me)
            else if (what === 'die' && dead.size < 2) dead.add(me)
            else if (what === 'pause' && paused.size < 2) paused.add(me)
            else turn(me, what === 'settle')
          }
          paused.clear()
          const alive = all.filter((member) => !dead.has(member))
          for (let round = 0; round < 6; round += 1) for (const me of alive) turn(me, true)
          const counts = alive.map((member) => record.owners.filter((owner) => owner === member).length)
          expect(counts.reduce((sum, count) => sum + count, 0)).toBe(partitions)
          expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
          const settledRecord = record
          for (const me of alive) turn(me, true)
          expect(record).toEqual(settledRecord)
        },
      ),
      { numRuns: 300 },
    )
  })
})
