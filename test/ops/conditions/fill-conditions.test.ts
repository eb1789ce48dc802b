import { expect, test } from 'vitest'
import { createConditions } from '../../../src/ops/conditions/conditions.ts'
import { createFillCauses } from '../../../src/ops/conditions/fill-conditions.ts'
import type { SpoolTotals } from '../../../src/spool/spool.ts'
import { handClock, spoolTotals } from '../../support/ops-world.ts'

const GiB = 1024 ** 3

function world() {
  const conditions = createConditions({ clock: handClock() })
  const fills = createFillCauses()
  return {
    /** Codes, keys and severities that are open for these totals. */
    open(more: Partial<SpoolTotals>) {
      conditions.look(
        fills(spoolTotals({ bytesMax: 100 * GiB, freeBytes: 50 * GiB, freeBytesMin: GiB, ...more })),
      )
      return conditions.open().map(({ code, key, severity }) => [code, key, severity].join(' '))
    },
  }
}

const { stores } = spoolTotals()

test('a spool is filling from three quarters on, by all that its limit counts', () => {
  const { open } = world()
  expect(open({ openBytes: 74 * GiB })).toEqual([])
  expect(open({ openBytes: 74 * GiB, stateBytes: GiB })).toEqual(['SPOOL_FILLING  warning'])
  expect(open({ openBytes: 70 * GiB })).toEqual(['SPOOL_FILLING  warning'])
  expect(open({ openBytes: 60 * GiB })).toEqual([])
})

test('a disk is filling below twice the minimum, and not before it was measured', () => {
  const { open } = world()
  expect(open({ freeBytes: null })).toEqual([])
  expect(open({ freeBytes: 2.1 * GiB })).toEqual([])
  expect(open({ freeBytes: 2 * GiB })).toEqual(['DISK_FILLING  warning'])
  expect(open({ freeBytes: 2.1 * GiB })).toEqual(['DISK_FILLING  warning'])
  expect(open({ freeBytes: 2.3 * GiB })).toEqual([])
})

test('each store of kept messages is filling for itself; one that drops the oldest is only noted', () => {
  const { open } = world()
  const use = (bytes: number, onFull: 'hold' | 'drop_oldest') => ({
    ...stores.quarantine,
    bytes,
    bytesMax: 1000,
    onFull,
  })
  const full = { ...stores, quarantine: use(800, 'drop_oldest'), dead_letters: use(800, 'hold') }
  expect(open({ stores: full })).toEqual([
    'STORE_FILLING dead_letters warning',
    'STORE_FILLING quarantine info',
  ])
  expect(open({ stores: { ...full, dead_letters: use(100, 'hold') } })).toEqual([
    'STORE_FILLING quarantine info',
  ])
})
