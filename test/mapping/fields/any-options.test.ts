// Any words together, on any messages: a config compiles or has problems, every message has a result, a payload
// has the types of the interface, and the explanation says what the payload has.

import { array, assert, property } from 'fast-check'
import { expect, test } from 'vitest'
import { compileSources } from '../../../src/mapping/compile/compile.ts'
import { noDevices } from '../../../src/mapping/devices/device-table.ts'
import { createExplainer } from '../../../src/mapping/explain/explain.ts'
import { valueIn } from '../../../src/mapping/explain/explain-fields.ts'
import { createPayloadCheck, type JsonObject } from '../../../src/sandbox/payload-check.ts'
import { messageOf, openMapperOf, payloadsIn, sentIn, truckSource } from '../../support/mapping-world.ts'
import { anyMap, anyMessage, soundConfigOf } from './any-fields.ts'

const checkPayload = createPayloadCheck(new Set(['payloadId', 'identity', 'content', 'timestamp'] as const))

test('any words have a result, a sound payload and its explanation, or a problem in the config', () => {
  let sound = 0
  assert(
    property(anyMap, array(anyMessage, { minLength: 1, maxLength: 3 }), (map, contents) => {
      const source = truckSource(map)
      const config = soundConfigOf(source)
      if (config === null) return
      sound += 1
      const { mapper, explain } = createExplainer(
        { devices: noDevices },
        compileSources(config, true),
        config,
      )
      const usual = openMapperOf([source])
      for (const [second, content] of contents.entries()) {
        const ts = 1_763_690_000_000 + second * 1000
        const arriving = messageOf({ ts, lat: 52.5, lon: 13.4, ...content })
        const result = usual.map(arriving)
        const explained = explain(arriving, mapper.map(arriving))
        if (result.kind !== 'payloads') continue
        const payload = JSON.parse(payloadsIn(result)[0]?.json ?? '') as JsonObject
        expect(checkPayload(payload, true)).toEqual([])
        for (const { value: sent } of sentIn(result).signals ?? []) expect(sent).toMatch(/^-?\d+(\.\d+)?$/)
        const fields = explained.records[0]?.fields ?? []
        for (const one of fields.filter((field) => field.value !== undefined))
          expect(valueIn(payload, one)).toEqual(one.value)
      }
    }),
    { numRuns: 100 },
  )
  expect(sound).toBeGreaterThan(20)
}, 120_000)
