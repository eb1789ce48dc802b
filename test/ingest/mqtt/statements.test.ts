// Each normative statement of MQTT 3.1.1 and MQTT 5 is in the name of a test, or of a row of its table, or there is a
// reason why it has none: `[MQTT3-1.5.3-1]`, `[MQTT5-1.5.4-1]`, and `[MQTT-3.6.1-1]` where both versions have the number
// for the same. MQTT 3.1.1 has one irregular number: 3-8.3-4.

import { glob, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

const places = [
  'test/ingest/**/*.{test.ts,cases.yaml}',
  // Kills of the gateway, with clients of MQTT 5.
  'test/system/mqtt5-clients.test.ts',
]

/** The sections of the standards and how many statements each has, from 1 on. */
const sections = {
  3: `
    1.5.3:3 2.2.2:2 2.3.1:7 3.1.0:2 3.1.2:24 3.1.3:11 3.1.4:5 3.2.0:1 3.2.2:6 3.3.1:12 3.3.2:3 3.3.4:1 3.3.5:2
    3.6.1:1 3.8.1:1 3.8.3:3 3.8.4:6 3.9.3:2 3.10.1:1 3.10.3:2 3.10.4:6 3.12.4:1 3.14.1:1 3.14.4:3 4.1.0:2 4.3.1:1
    4.3.2:2 4.3.3:2 4.4.0:1 4.5.0:2 4.6.0:6 4.7.1:3 4.7.2:1 4.7.3:4 4.8.0:2 6.0.0:4 7.0.0:2 7.1.1:1 7.1.2:1
  `,
  5: `
    1.5.4:3 1.5.5:1 1.5.7:1 2.1.3:1 2.2.1:6 2.2.2:1 3.1.0:2 3.1.2:30 3.1.3:12 3.1.4:6 3.2.0:2 3.2.2:22 3.3.1:13
    3.3.2:20 3.3.4:10 3.4.2:3 3.5.2:3 3.6.1:1 3.6.2:3 3.7.2:3 3.8.1:1 3.8.3:5 3.8.4:8 3.9.2:2 3.9.3:2 3.10.1:1
    3.10.3:2 3.10.4:6 3.11.2:2 3.11.3:2 3.12.4:1 3.14.0:1 3.14.1:1 3.14.2:4 3.14.4:3 3.15.1:1 3.15.2:3 4.1.0:2
    4.2:1 4.3.1:1 4.3.2:5 4.3.3:13 4.4.0:2 4.5.0:2 4.6.0:6 4.7.0:1 4.7.1:2 4.7.2:1 4.7.3:4 4.8.2:6 4.9.0:3
    4.12.0:7 4.12.1:2 4.13.1:1 4.13.2:1 6.0.0:4
  `,
}

const notTested: readonly (readonly [reason: string, of3: string, of5: string])[] = [
  [
    'The gateway sends no message of one client to another, and stores no retained message.',
    `3.1.2-5 3.1.2-7 3.1.2-16 3.1.2-17 3.3.1-3 3.3.1-5 3.3.1-6 3.3.1-7 3.3.1-8 3.3.1-9 3.3.1-10 3.3.1-11 3.3.2-3
     3.3.5-1 4.5.0-1 4.6.0-5 4.6.0-6`,
    `3.1.2-15 3.1.3-10 3.2.2-10 3.2.2-11 3.2.2-12 3.3.1-3 3.3.1-5 3.3.1-6 3.3.1-7 3.3.1-9 3.3.1-10 3.3.1-11 3.3.1-12
     3.3.1-13 3.3.2-3 3.3.2-4 3.3.2-5 3.3.2-6 3.3.2-15 3.3.2-16 3.3.2-17 3.3.2-18 3.3.2-20 3.3.4-2 3.3.4-3 3.3.4-4
     3.3.4-5 3.8.3-3 3.8.4-4 3.8.4-8 3.10.4-3 4.5.0-1 4.6.0-5 4.6.0-6 4.7.3-4 4.8.2-3 4.8.2-4 4.8.2-5 4.8.2-6`,
  ],
  [
    'The gateway sends messages of QoS 0 only, and sends none again.',
    '2.3.1-4 3.10.4-3 4.4.0-1 4.6.0-1',
    '2.2.1-4 3.3.4-9 3.3.4-10 3.6.2-2 3.6.2-3',
  ],
  [
    'It binds the client alone.',
    '2.3.1-2 2.3.1-3 3.1.2-23 3.1.3-7 3.14.4-1 3.14.4-2 4.3.2-1 4.3.3-1 4.5.0-2 4.6.0-4 7.1.2-1',
    `3.1.2-30 3.3.2-10 4.3.1-1 4.3.2-1 4.3.2-2 4.3.2-3 4.3.3-1 4.3.3-2 4.3.3-3 4.3.3-4 4.3.3-5 4.3.3-6 4.3.3-7
     4.5.0-2 4.6.0-1 4.6.0-4`,
  ],
  [
    'Enhanced authentication is refused (4.12.0-1).',
    '',
    '3.15.2-1 3.15.2-2 3.15.2-3 4.12.0-2 4.12.0-3 4.12.0-4 4.12.0-5 4.12.1-1 4.12.1-2',
  ],
  [
    'It is about servers that connect to others. The bridges are clients by mqtt.js (test/ingest/bridges).',
    '7.0.0-1',
    '',
  ],
]

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
  const reasons = notTested.flatMap(([, of3, of5]) => wordsOf(version === 3 ? of3 : of5))
  const named = await numbersInNames(version)
  expect([...named, ...reasons].toSorted()).toEqual(all.toSorted())
})
