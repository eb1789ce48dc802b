import { expect, test } from 'vitest'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import { noDevices } from '../../../src/mapping/devices/device-table.ts'
import { createMapper, type Mapper } from '../../../src/mapping/mapping.ts'
import type { Encoding, StatefulDecoder } from '../../../src/mapping/types.ts'
import { configOf, messageOf, payloadIn, sentIn, truckSource } from '../../support/mapping-world.ts'

const ts = 1_750_000_000_000

/** An encoding that sends a base (`=5000`) and then the difference from it (`+2`), as odometers do. */
const differences: Encoding = {
  description: 'a base and differences from it',
  stateKeyPrefix: 'differences/',
  createDecoder: ({ source }) => createDifferences(`differences/${source}/`),
}

function createDifferences(prefix: string): StatefulDecoder {
  const bases = new Map<string, number>()
  return {
    forTopic: (topic) => (bytes, _arrivedAt, live) => {
      const text = bytes.toString()
      const number = Number(text.slice(1))
      if (text.startsWith('=')) {
        if (!live) return { kind: 'ignored', reason: 'base' }
        bases.set(topic, number)
        return {
          kind: 'ignored',
          reason: 'base',
          writes: [{ key: prefix + topic, value: Buffer.from(text) }],
        }
      }
      const base = bases.get(topic)
      if (base === undefined)
        return {
          kind: 'refused',
          reason: 'NO_BIRTH',
          detail: 'No base is known.',
          rebirth: { topic: `${topic}/ask`, bytes: Buffer.from('?') },
        }
      const value = { ts, lat: 48.1, lon: 2.2, km: base + number }
      return { kind: 'value', value, ...(number < 0 && { omitted: ['difference|negative'] }) }
    },
    restore(entries) {
      bases.clear()
      for (const [key, value] of entries)
        if (key.startsWith(prefix)) bases.set(key.slice(prefix.length), Number(value.toString().slice(1)))
    },
    counters: () => ({ bases: bases.size }),
  }
}

function open(): Mapper {
  const signals = [{ type: 'OBD_LIFETIME_ODOMETER', path: 'km', unit: 'km' }]
  const { sources } = compileSources(configOf([truckSource({ signals })]))
  const decoded = sources.map((source) => ({ ...source, encoding: differences }))
  return createMapper({ devices: noDevices }, { sources: decoded })
}

test('a stateful decoder is restored, requests missing state, and has its writes in the result', () => {
  const mapper = open()
  const topic = 'telemetry/v1/truck-7'
  expect(mapper.map(messageOf('+2'))).toMatchObject({
    kind: 'unmappable',
    reason: 'NO_BIRTH',
    rebirth: { topic: `${topic}/ask`, bytes: Buffer.from('?') },
  })
  const base = mapper.map(messageOf('=5000'))
  expect(base).toMatchObject({ kind: 'ignored', reason: 'base' })
  expect(sentIn(mapper.map(messageOf('+2'))).signals).toMatchObject([{ value: '5002' }])
  expect(mapper.counters().decoders.get('trucks')).toEqual({ bases: 1 })

  const next = open()
  next.restore((base.writes ?? []).map(({ key, value }) => [key, value ?? Buffer.alloc(0)]))
  expect(sentIn(next.map(messageOf('+3'))).signals).toMatchObject([{ value: '5003' }])
})

test('mapping a kept message again does not change the state of its decoder', () => {
  const mapper = open()
  mapper.map(messageOf('=5000'))
  expect(mapper.map(messageOf('=9000'), false).writes).toBeUndefined()
  expect(sentIn(mapper.map(messageOf('+1'))).signals).toMatchObject([{ value: '5001' }])
})

test('values that a decoder omits are counted by source, field and reason', () => {
  const mapper = open()
  mapper.map(messageOf('=5000'))
  payloadIn(mapper.map(messageOf('+-1')))
  expect(mapper.counters().omitted.get('trucks|difference|negative')).toBe(1)
})
