import { describe, expect, test } from 'vitest'
import { createFoundValues, number, text } from '../../../src/mapping/fast-path/found-values.ts'
import { createMessageLayouts } from '../../../src/mapping/fast-path/message-layout.ts'
import { createMessageValues } from '../../../src/mapping/fast-path/message-values.ts'
import { createWantedKeys } from '../../../src/mapping/fast-path/wanted-keys.ts'

const paths = ['time', 'gps.lat', 'gps.lon', 'ok', 'name', 'list']

const usual =
  '{"time":1760000000000,"list":null,"x":[{"y":-1.5},{"y":20}],"gps":{"lat":48.850,"lon":-2.3},' +
  '"ok":true,"name":"A 1","off":false,"fw":"1.2"}\n'

function openValues() {
  const keys = createWantedKeys()
  const slots = paths.map((path) => keys.slotsOf(path))
  const tree = keys.tree()
  const values = createMessageValues(tree.root, tree)
  return (message: Buffer): string => {
    if (!values.begin(message)) return 'to be parsed'
    return JSON.stringify(
      slots.map(([slot = 0]) => {
        const read = values.numberIn(slot)
        const bytes = message.toString('latin1', values.starts[slot], values.ends[slot])
        const { kinds, isRead } = values
        if (kinds[slot] === 0) return null
        return [kinds[slot], Object.is(read, -0) ? '-0' : read, kinds[slot] === number && isRead[slot], bytes]
      }),
    )
  }
}

/** The same message, walked: its reader knows no layout. */
const walked = (message: Buffer) => openValues()(message)

test('a message with other values has the layout of the one before, and its wanted values are found', () => {
  const found = createFoundValues(2)
  const layouts = createMessageLayouts(found)
  layouts.begin()
  layouts.add(5, 6)
  layouts.name(1)
  layouts.add(11, 14)
  layouts.add(19, 23)
  layouts.keep(Buffer.from('{"a":1,"b":"x","c":true}'))
  expect(layouts.follow(Buffer.from('{"a":-2.50,"b":"longer","c":null}'))).toBe(true)
  expect([...found.kinds]).toEqual([0, number])
  expect([found.numbers[1], found.starts[1], found.ends[1]]).toEqual([-2.5, 5, 9])
  expect(layouts.follow(Buffer.from('{"a":"t","b":5,"c":0}'))).toBe(true)
  expect([...found.kinds]).toEqual([0, text])
  for (const other of ['{"A":1,"b":"x","c":true}', '{"a":1,"b":"x","c":true} ', '{"a":1,"b":"x"}', ''])
    expect(layouts.follow(Buffer.from(other)), other).toBe(false)
})

describe('a message like the one before has the values that it has alone', () => {
  const bytes = Buffer.from(usual)
  const inBothWays = (message: Buffer): [behindUsual: string, alone: string] => {
    const read = openValues()
    read(bytes)
    const behindUsual = read(message)
    if (read(bytes) !== walked(bytes)) throw new Error(`the message behind ${message.toString('latin1')}`)
    return [behindUsual, walked(message)]
  }

  test('which are the same ones in the same message', () => {
    expect(walked(bytes)).not.toBe('to be parsed')
    const [behindUsual, alone] = inBothWays(bytes)
    expect(behindUsual).toBe(alone)
  })

  test('with each of its bytes replaced, left out, or twice', () => {
    const replacements = Buffer.from('"\\}],:.-0e \0\x80', 'latin1')
    for (let at = 0; at < bytes.length; at += 1) {
      const [before, own, behind] = [
        bytes.subarray(0, at),
        bytes.subarray(at, at + 1),
        bytes.subarray(at + 1),
      ]
      const others = [Buffer.alloc(0), Buffer.concat([own, own])]
      for (const byte of replacements) others.push(Buffer.from([byte]))
      for (const other of others) {
        const [behindUsual, alone] = inBothWays(Buffer.concat([before, other, behind]))
        expect(behindUsual, `${at} ${other.toString('latin1')}`).toBe(alone)
      }
      const [behindUsual, alone] = inBothWays(before)
      expect(behindUsual).toBe(alone)
    }
  })

  const values = [
    '0',
    '-0',
    '00',
    '01',
    '-',
    '-01',
    '1.',
    '.5',
    '1.50',
    '-0.0',
    '0.0000001',
    '0.000001',
    '1e5',
    '1.5E-3',
  ]
  values.push(
    '999999999999999',
    '9999999999999999',
    '123456.7890123456',
    '12345678901234.50',
    '1,2',
    '1 ',
    ' 1',
    '+1',
  )
  values.push(
    'true',
    'tru',
    'truex',
    'false',
    'null',
    'nul',
    'NaN',
    '""',
    '"a"',
    '"\\u0041"',
    '"\u00e4"',
    '"\u007f"',
    '"a',
  )
  values.push('"a"b"', '[]', '{}', '[1]', '{"lat":1}', '')
  test.each(values)('with the value %s', (value) => {
    const places = [
      '1760000000000',
      'null',
      '-1.5',
      '20',
      '48.850',
      '-2.3',
      'true',
      '"A 1"',
      'false',
      '"1.2"',
    ]
    for (const place of places) {
      const [behindUsual, alone] = inBothWays(Buffer.from(usual.replace(place, () => value)))
      expect(behindUsual, place).toBe(alone)
    }
  })
})

test('a value that only the message before had is not found', () => {
  const read = openValues()
  const texts = [
    '{"time":1}',
    '{"time":1,"ok":5}',
    '{"list":[1]}',
    '{"list":[2]}',
    '{"gps":5}',
    '{"gps":{"lat":1}}',
  ]
  for (const first of texts)
    for (const second of texts)
      for (const message of [first, second, first, second])
        expect(read(Buffer.from(message)), message).toBe(walked(Buffer.from(message)))
})

test('more layouts than are kept, and messages of many values, are read as well', () => {
  const read = openValues()
  const messages = Array.from({ length: 12 }, (_, index) =>
    Buffer.from(
      `{"x":[${Array.from({ length: index * 50 }, () => 1).join(',')}],"time":${index},"k${index}":0}`,
    ),
  )
  for (let round = 0; round < 40; round += 1)
    for (const message of messages) expect(read(message)).toBe(walked(message))
})
