import { glob, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { notTested, tested } from './statements.ts'

/** Where tests of MQTT 5 are. The numbers of MQTT 3.1.1 mean other things. */
const places = [
  'test/ingest/mqtt5/*.test.ts',
  'test/ingest/broker/version5/*.test.ts',
  'test/system/mqtt5-clients.test.ts',
  'test/ingest/broker/listeners/websocket/*.test.ts',
]

async function numbersInNames(): Promise<Set<string>> {
  const found = new Set<string>()
  for await (const path of glob(places)) {
    const text = await readFile(path, 'utf8')
    // In a name, or alone in a table whose test has it in its name.
    for (const [, number] of text.matchAll(/(?:\[MQTT-|^ +(?:\[)?')(\d\.\d+(?:\.\d+)?-\d+)['\]]/gm))
      if (number !== undefined) found.add(number)
  }
  return found
}

test('each statement has a test that names it, or a reason', async () => {
  const reasons = notTested.flatMap(([, numbers]) => numbers)
  expect(new Set([...tested, ...reasons]).size).toBe(251)
  expect(tested.length + reasons.length).toBe(251)
  const named = await numbersInNames()
  expect(tested.filter((number) => !named.has(number))).toEqual([])
  expect([...named].filter((number) => !tested.includes(number))).toEqual([])
})
