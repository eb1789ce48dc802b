// Each normative statement of MQTT 3.1.1 and MQTT 5 is in the name of a test, or of a row of its table, or there is a
// reason why it has none: `[MQTT3-1.5.3-1]`, `[MQTT5-1.5.4-1]`, and `[MQTT-3.6.1-1]` where both versions have the number
// for the same. MQTT 3.1.1 has one irregular number: 3-8.3-4.

import { glob, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { rowsBeside } from '../../support/case-rows.ts'

const places = [
  'test/ingest/**/*.{test.ts,cases.yaml}',
  // Kills of the gateway, with clients of MQTT 5.
  'test/system/mqtt5-clients.test.ts',
]

const { sections, not_tested: notTested } = rowsBeside(import.meta.filename) as {
  sections: Record<3 | 5, string>
  not_tested: { reason: string; 3?: string; 5?: string }[]
}

const wordsOf = (text: string) => text.split(/\s+/).filter((word) => word !== '')

/** All numbers of a version. */
function numbersOf(version: 3 | 5): string[] {
  const all = wordsOf(sections[version]).flatMap((section) => {
    const [name, count] = section.split(':')
    return Array.from({ length: Number(count) }, (_, index) => `${name}-${index + 1}`)
  })
  // MQTT 5 has no 2.2.1-1.
  return version === 3 ? [...all, '3-8.3-4'] : all.filter((number) => number !== '2.2.1-1')
}

async function numbersInNames(version: 3 | 5): Promise<string[]> {
  const found = new Set<string>()
  for await (const path of glob(places)) {
    const text = await readFile(path, 'utf8')
    for (const [, number = ''] of text.matchAll(new RegExp(`\\[MQTT${version}?-([\\d.-]+)\\]`, 'g')))
      found.add(number)
  }
  return [...found]
}

test.each([
  [3, 141],
  [5, 251],
] as const)('each statement of MQTT %d has a test that names it, or a reason', async (version, count) => {
  const all = numbersOf(version)
  expect(all).toHaveLength(count)
  const reasons = notTested.flatMap((one) => wordsOf(one[version] ?? ''))
  const named = await numbersInNames(version)
  expect([...named, ...reasons].toSorted()).toEqual(all.toSorted())
})
