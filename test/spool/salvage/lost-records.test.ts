import { expect, test } from 'vitest'
import type { LaneId } from '../../../src/domain/ids.ts'
import { deadLetterKey, laneKey, seqKey, table } from '../../../src/spool/chunk-log/key-layout.ts'
import { damagedFileOf, damageSentence } from '../../../src/spool/salvage/lost-records.ts'
import type { FileDamage } from '../../../src/storage/storage.ts'

const lane = (id: number) => id as LaneId
const chunk = (id: number, seq: number) => seqKey(table.chunks, lane(id), seq)

const damageOf = (keys: FileDamage['keys'], more: Partial<FileDamage> = {}) =>
  damagedFileOf({
    file: '000005.ldb',
    unit: 'block',
    offset: 4096,
    bytes: 800,
    what: 'its checksum is wrong',
    keys,
    ...more,
  })

test.each([
  [
    'numbers of a lane',
    chunk(3, 100),
    chunk(3, 300),
    ['payloads of lane 3, the chunks that start at numbers 101 to 300'],
  ],
  ['several lanes', chunk(3, 100), chunk(5, 7), ['payloads of lanes 3 to 5']],
  [
    'a key that LevelDB shortened',
    chunk(3, 100),
    Buffer.from([0x10, 0, 0, 0, 4]),
    ['payloads of lanes 3 to 4'],
  ],
  [
    'several tables',
    chunk(3, 100),
    laneKey(table.totals, lane(2)),
    ['payloads of lanes from 3 on', 'batches', 'totals'],
  ],
  [
    'dead letters',
    deadLetterKey(1, 2),
    deadLetterKey(3, 4),
    ['dead letters 00000000000000010000000000000002 to 00000000000000030000000000000004'],
  ],
  ['the first keys', null, laneKey(table.lanes, lane(2)), ['format', 'lanes']],
  ['the last keys', Buffer.from([table.shelves]), null, ['shelves', 'receipts']],
  ['unknown keys', null, null, ['records of any table']],
])('damage to %s is said in words', (_, after, until, records) => {
  expect(damageOf({ after, until }).records).toEqual(records)
})

test('damage is a sentence with its place, and with what it can have held', () => {
  expect(damageSentence(damageOf({ after: chunk(1, 2), until: chunk(1, 3) }))).toBe(
    '000005.ldb, block at byte 4096 (800 bytes), cannot be read: its checksum is wrong. ' +
      'It can have held: payloads of lane 1, the chunks that start at numbers 3 to 3.',
  )
  const current = {
    file: 'CURRENT',
    unit: 'CURRENT',
    offset: 0,
    bytes: 0,
    what: 'the file is missing',
  } as const
  expect(damageSentence(damageOf(null, current))).toBe('CURRENT cannot be read: the file is missing.')
})
