import { describe, expect, test } from 'vitest'
import { envelopeOf } from '../../../src/domain/message.ts'
import { remapSlice } from '../../../src/ingest/remap/remap.ts'
import type { RemapEntry } from '../../../src/ingest/remap/slice-result.ts'
import { messageOf, openMapperOf } from '../../support/mapping-world.ts'

const source = {
  name: 'values',
  topic: 'vehicles/{device}/{metric}',
  encoding: 'scalar',
  coalesce: { name: '{metric}', window: '500ms', require: ['latitude', 'longitude'] },
  map: { time: { format: 'arrival' }, latitude: { path: 'latitude' }, longitude: { path: 'longitude' } },
}
const open = () => openMapperOf([source])

/** `a:latitude` is a value of device a; each comes 10 ms after the one before. */
function entries(...names: string[]): RemapEntry[] {
  return names.map((name, index) => {
    const [device = '', metric = ''] = name.split(':')
    const topic = `vehicles/${device}/${metric}`
    const arrivedAt = 1_760_000_000_000 + index * 10
    return { id: String(index), envelope: envelopeOf(messageOf('10', { topic, arrivedAt }), 'values') }
  })
}

const pair = ['a:latitude', 'a:longitude']

describe('a slice of kept messages', () => {
  test('is cut before an incomplete record where messages follow', () => {
    const again = remapSlice(open, entries(...pair, ...pair, 'a:latitude'), { more: true, mayGrow: true })
    expect(again).toMatchObject({ entries: 4, taken: ['0', '1', '2', '3'] })
    expect(again?.payloads).toHaveLength(2)
    expect(again?.ignored.size).toBe(0)
  })

  test('is mapped whole where nothing follows, and open records are closed', () => {
    const again = remapSlice(open, entries(...pair, 'a:latitude'), { more: false, mayGrow: false })
    expect(again).toMatchObject({ entries: 3, ignored: new Map([['values|incomplete', 1]]) })
    expect(again?.payloads).toHaveLength(1)
  })

  test('asks for more messages where all of it is one record, and is mapped as it is where there are none', () => {
    expect(remapSlice(open, entries('a:latitude'), { more: true, mayGrow: true })).toBeNull()
    expect(remapSlice(open, entries('a:latitude'), { more: true, mayGrow: false })).toMatchObject({
      entries: 1,
    })
  })

  test('is left while the rest of its record may still arrive, and mapped afterwards', () => {
    const [first, second] = entries('a:latitude', 'a:longitude')
    const arrivedAt = first!.envelope.arrivedAt
    const options = { more: false, mayGrow: false }
    const ask = (arrivedUntil: number, run: readonly RemapEntry[] = [first!]) =>
      remapSlice(open, run, { ...options, arrivedUntil })
    expect(ask(arrivedAt + 499)).toBeNull()
    expect(ask(arrivedAt + 500)).toMatchObject({ entries: 1, payloads: [] })
    expect(ask(arrivedAt + 520, [first!, second!])?.payloads).toHaveLength(1)
    // The complete record is mapped; the recent one behind it stays.
    const three = entries(...pair, 'a:latitude')
    expect(ask(arrivedAt + 30, three)).toMatchObject({ entries: 2, payloads: [{ device: 'a' }] })
    // The clock was set back since: it does not wait for that long.
    expect(ask(arrivedAt - 3_600_000)).toMatchObject({ entries: 1 })
  })

  test('counts messages that cannot be mapped as refused, not as taken', () => {
    const [fine] = entries('a:latitude')
    const lost = { id: 'x', envelope: { ...fine!.envelope, topic: 'nowhere' } }
    const again = remapSlice(open, [lost], { more: false, mayGrow: false })
    expect(again).toMatchObject({ entries: 1, taken: [], refused: [{ id: 'x', reason: 'NO_SOURCE' }] })
  })
})
