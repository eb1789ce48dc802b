import { describe, expect, test } from 'vitest'
import { findUnread, readsOfSource, unreadText } from '../../../src/mapping/path/unread-keys.ts'
import { configOf, truckSource } from '../../support/mapping-world.ts'
import { placed } from '../../support/placed.ts'

function unread(map: Record<string, unknown>, message: unknown, rest: Record<string, unknown> = {}) {
  const [source] = configOf([truckSource(map, rest)]).sources
  const each = Array.isArray(message) ? (message as unknown[]) : [message]
  const places = each.map((record) => placed(record, { root: message }))
  return source ? findUnread(readsOfSource(source).record, message, places, { visitsMax: 1000 }) : null
}

const base = { ts: 1, lat: 2, lon: 3 }

describe('the keys that nothing reads', () => {
  test('are those that no path of the source ends at', () => {
    expect(unread({}, { ...base, Longitud: 1, spd: 54, battery: 3.9 })).toEqual({
      keys: ['Longitud', 'spd', 'battery'],
      more: 0,
      near: ['longitude', 'speed'],
    })
    expect(unread({}, base)).toMatchObject({ keys: [], near: [] })
  })

  test('are also those inside of an object that a condition asks for', () => {
    const rest = { when: '!has(other) && has(payload)' }
    expect(unread({}, { ...base, payload: { Lati: 1, odd: { spd: 2 } } }, rest)).toMatchObject({
      keys: ['payload.odd.spd', 'payload.Lati'],
      near: ['speed'],
    })
  })

  test.each<[string, Record<string, unknown>, object]>([
    ['a condition of the source', { when: 'sat > 3 && has(hdop)' }, { sat: 4, hdop: 1 }],
    ['the rule of the device', { device: { path: 'imei' } }, { imei: 'a' }],
    ['an index', { when: 'io[1] > 0 && io[0] == 1' }, { io: [1, 2] }],
    ['a choice by a key', { when: 'io.filter(x, x.id == 5)[0].v > 0' }, { io: [{ id: 5, v: 1 }] }],
    [
      'a key that matches',
      { when: 'entries(record).filter(x, x.key.startsWith("gps_"))[0].value.x > 1' },
      { gps_7: { x: 3 } },
    ],
    ['the first key', { when: 'entries(record)[0].value.x > 1' }, { ts: { x: 3 } }],
    [
      'a key by its start',
      { when: 'entries(record).filter(x, x.key.startsWith("gps_"))[0].value.alt > 1' },
      { gps_7: { alt: 3 } },
    ],
    ['parts of a text', { when: 'pos.split(",")[0] > 1' }, { pos: '3,4' }],
    ['all entries', { when: 'entries(all)[0].value > 1' }, { all: { a: 1, b: 2 } }],
    ['the whole message', { when: 'message.deep.er == 1' }, { deep: { er: 1 } }],
    ['a key in quotes', { when: 'record["a.b"] == 1' }, { 'a.b': 1 }],
    ['an unpacked value', { extract: [{ from: 'raw', into: 'x', as: 'json' }] }, { raw: '{}', x: { y: 1 } }],
  ])('do not have those of %s', (_, rest, more) => {
    expect(unread({}, { ...base, ...more }, rest)?.keys).toEqual([])
  })

  test('do not have values that were unpacked in the records of a list', () => {
    const extract = [{ from: 'raw.in', into: 'x', as: 'json' }]
    const list = [{ ...base, raw: { in: '{}', no: 1 }, x: { y: 1 } }, base]
    expect(unread({}, list, { extract, each: '$' })?.keys).toEqual(['[].raw.no'])
  })

  test('are found in objects whose keys are named like methods', () => {
    const io = [{ id: { toString: 2, valueOf: 1 } }, { id: 5, v: 1 }]
    const found = unread({}, { ...base, io }, { when: 'io.filter(x, x.id == 5)[0].v > 0' })
    expect(found?.keys).toEqual(['io[].id.toString', 'io[].id.valueOf'])
  })

  test('are written as paths, once for all elements of a list', () => {
    const list = [
      { ...base, io: [{ id: 1, n: 2 }, { n: 3 }], 'a b': 1 },
      { ...base, io: [{ id: 2 }], speed2: 1 },
    ]
    expect(unread({}, list, { each: '$' })?.keys).toEqual([
      '[].speed2',
      '[].io[].id',
      '[].io[].n',
      '[]."a b"',
    ])
  })

  test('are found in a message whose values cannot be made a text', () => {
    const hostile = { toString: 1, valueOf: 1 }
    const found = unread(
      {},
      { ...base, io: [{ id: hostile, v: 1 }] },
      { when: 'io.filter(x, x.id == 5)[0].w > 0' },
    )
    expect(found?.keys).toContain('io[].v')
  })

  test('leave out keys without a value, and are bounded', () => {
    expect(unread({}, { ...base, a: null, b: '', c: {}, d: [] })?.keys).toEqual([])
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`k${index}`, index]))
    const found = unread({}, { ...base, ...many, mileage: 1 })
    expect(found).toMatchObject({ more: 23, near: ['odometer'] })
    expect(found?.keys).toHaveLength(8)
    expect(found?.keys[0]).toBe('mileage')
  })

  test('leave out what the source names as unused', () => {
    const unused = ['rx', 'a.b', '$.c', 'list']
    const message = { ...base, rx: [{ lat: 1 }], a: { b: { lon: 1 }, spd: 2 }, c: 1, list: [1], odo: 3 }
    expect(unread({}, message, { unused })?.keys).toEqual(['a.spd', 'odo'])
    const [source] = configOf([truckSource({}, { unused: ['$.c'] })]).sources
    expect(
      source && findUnread(readsOfSource(source).record, { c: 1, d: 2 }, [], { visitsMax: 9 }).keys,
    ).toEqual(['d'])
  })

  test('are found however deep or wide a message is', () => {
    let deep: unknown = 1
    for (let level = 0; level < 200; level += 1) deep = { a: deep }
    expect(unread({}, { ...base, deep })?.keys).toEqual([])
    const wide = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, 1]))
    expect(unread({}, wide)).toMatchObject({ more: 1000 - 8, partOf: 'its first 1000 values' })
  })
})

test('the sentence names keys and fields', () => {
  expect(unreadText({ keys: ['spd', 'Longitud'], more: 3, near: ['speed', 'longitude'] })).toBe(
    'The message has `spd`, `Longitud` and 3 more, which nothing reads; near: speed, longitude.',
  )
  expect(unreadText({ keys: ['x'], more: 0, near: [] })).toBe('The message has `x`, which nothing reads.')
  expect(unreadText({ keys: [], more: 0, near: [] })).toBe('')
  expect(unreadText({ keys: ['x'], more: 1, near: [], partOf: 'its first 9 values' })).toBe(
    'The message has `x` and 1 more, which nothing reads (of its first 9 values).',
  )
})
