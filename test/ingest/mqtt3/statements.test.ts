import { expect, test } from 'vitest'
import { numbersInNames } from '../../support/statement-names.ts'
import { tested as testedInVersion5 } from '../mqtt5/statements.ts'
import { asVersion5, notTested, tested } from './statements.ts'

/** Where tests of MQTT 3.1.1 are named by its statements. The numbers of MQTT 5 mean other things. */
const places = [
  'test/ingest/mqtt3/*.test.ts',
  'test/ingest/broker/broker.test.ts',
  'test/ingest/real-clients.test.ts',
]

test('each statement has a test that names it, or a reason', async () => {
  const others = [...asVersion5, ...notTested.flatMap(([, numbers]) => numbers)]
  expect(new Set([...tested, ...others]).size).toBe(141)
  expect(tested.length + others.length).toBe(141)
  const named = await numbersInNames(places)
  expect(tested.filter((number) => !named.has(number))).toEqual([])
  expect([...named].filter((number) => !tested.includes(number))).toEqual([])
  expect(asVersion5.filter((number) => !testedInVersion5.includes(number))).toEqual([])
})
