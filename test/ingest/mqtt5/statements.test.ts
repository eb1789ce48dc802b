import { expect, test } from 'vitest'
import { numbersInNames } from '../../support/statement-names.ts'
import { notTested, tested } from './statements.ts'

/** Where tests of MQTT 5 are. The numbers of MQTT 3.1.1 mean other things. */
const places = [
  'test/ingest/mqtt5/*.test.ts',
  'test/ingest/broker/version5/*.test.ts',
  'test/system/mqtt5-clients.test.ts',
  'test/ingest/broker/listeners/websocket/*.test.ts',
]

test('each statement has a test that names it, or a reason', async () => {
  const reasons = notTested.flatMap(([, numbers]) => numbers)
  expect(new Set([...tested, ...reasons]).size).toBe(251)
  expect(tested.length + reasons.length).toBe(251)
  const named = await numbersInNames(places)
  expect(tested.filter((number) => !named.has(number))).toEqual([])
  expect([...named].filter((number) => !tested.includes(number))).toEqual([])
})
