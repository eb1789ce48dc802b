import { describe, expect, test } from 'vitest'
import type { BatchView } from '../../../src/delivery/types.ts'
import {
  describeSelection,
  listBatches,
  selectBatches,
} from '../../../src/delivery/batch-operations/select-batches.ts'
import { batchView, heldView } from '../../support/batch-views.ts'

const now = 1_000_000
const hour = 3_600_000

const views: BatchView[] = [
  batchView('a', { state: 'in flight', sealedAt: now - 1000 }),
  batchView('b', { state: 'waiting', sealedAt: now - 5000 }),
  heldView('c', 'repeated', { since: now - 200 }),
  heldView('d', 'stuck', { since: now - 400, provider: 'north' }),
  heldView('e', 'repeated', { since: now - 300, provider: 'north' }),
]

const idsOf = (list: readonly BatchView[]) => list.map(({ batchId }) => batchId).join('')
const selected = (selection: Parameters<typeof selectBatches>[1]) =>
  idsOf(selectBatches(views, selection, now).selected)

describe('a selection of batches', () => {
  test('without batchIds takes held batches only, the oldest first', () => {
    expect(selected({})).toBe('dec')
    expect(selected({ provider: 'default' })).toBe('c')
    expect(selected({ reasons: ['repeated'] })).toBe('ec')
    expect(selected({ reasons: ['repeated'], provider: 'north' })).toBe('e')
    expect(selected({ olderThanMs: 300 })).toBe('de')
    expect(selected({ reasons: ['unlisted'] })).toBe('')
    expect(selected({ reasons: ['repeated', 'stuck'], provider: 'north' })).toBe('de')
  })

  test('without batchIds takes a held batch that is being retried, so that it is reported', () => {
    const retried = heldView('r', 'stuck', { since: now - 1, state: 'in flight' })
    expect(idsOf(selectBatches([...views, retried], { reasons: ['stuck'] }, now).selected)).toBe('dr')
  })

  test('takes a batchId in any state, once, in upper or lower case', () => {
    const { selected: found, missing } = selectBatches(views, { ids: ['B', 'a', 'b', 'z'] }, now)
    expect(idsOf(found)).toBe('ba')
    expect(missing).toEqual(['z'])
  })

  test('takes a batchId only if the other conditions hold as well', () => {
    const { selected: found, missing } = selectBatches(views, { ids: ['c', 'd'], reasons: ['stuck'] }, now)
    expect([idsOf(found), missing]).toEqual(['d', ['c']])
  })
})

describe('a list of batches', () => {
  test('has held batches first, the oldest first, and counts what the limit leaves out', () => {
    const { batches, more, groups } = listBatches(views, {}, { now, limit: 4 })
    expect([idsOf(batches), more]).toEqual(['decb', 1])
    expect(
      groups.map(({ state, reason, provider, payloads }) => [provider, state, reason, payloads]),
    ).toEqual([
      ['default', 'waiting', null, 10],
      ['default', 'in flight', null, 10],
      ['north', 'held', 'stuck', 10],
      ['north', 'held', 'repeated', 10],
      ['default', 'held', 'repeated', 10],
    ])
  })

  test('is filtered by provider, reason and age', () => {
    const list = (selection: Parameters<typeof listBatches>[1]) =>
      idsOf(listBatches(views, selection, { now, limit: 10 }).batches)
    expect(list({ provider: 'north' })).toBe('de')
    expect(list({ reasons: ['repeated'] })).toBe('ec')
    expect(list({ olderThanMs: 400 })).toBe('dba')
  })
})

describe('a selection in the log', () => {
  test('reads as the options of the command', () => {
    expect(describeSelection({})).toBe('--all')
    expect(describeSelection({ reasons: ['stuck'], provider: 'x', olderThanMs: hour })).toBe(
      '--provider x --reason stuck --older-than 1h',
    )
    const ids = Array.from({ length: 12 }, (_, n) => `id${n}`)
    expect(describeSelection({ ids })).toBe('id0 id1 id2 id3 id4 id5 id6 id7 id8 id9 and 2 more')
  })
})
