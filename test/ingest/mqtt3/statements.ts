// statements.ts: the normative statements of MQTT 3.1.1 by their numbers, without `MQTT-`. Those of `tested` are
// in the names of tests, those of `asVersion5` in the names of tests of MQTT 5, where the number means the same; for
// the others there is a reason. Together they are all 141. One has an irregular number in the standard: 3-8.3-4.

export const tested: readonly string[] = `
  1.5.3-1 1.5.3-2 1.5.3-3 2.2.2-1 2.2.2-2 2.3.1-1 2.3.1-5 2.3.1-6 2.3.1-7 3.1.0-1 3.1.0-2 3.1.2-1
  3.1.2-2 3.1.2-3 3.1.2-4 3.1.2-6 3.1.2-8 3.1.2-9 3.1.2-10 3.1.2-11 3.1.2-12 3.1.2-13 3.1.2-14
  3.1.2-15 3.1.2-18 3.1.2-19 3.1.2-20 3.1.2-21 3.1.2-22 3.1.2-24 3.1.3-1 3.1.3-2 3.1.3-3 3.1.3-4
  3.1.3-5 3.1.3-6 3.1.3-8 3.1.3-9 3.1.3-10 3.1.3-11 3.1.4-1 3.1.4-2 3.1.4-3 3.1.4-4 3.1.4-5 3.2.0-1
  3.2.2-1 3.2.2-2 3.2.2-3 3.2.2-4 3.2.2-5 3.2.2-6 3.3.1-1 3.3.1-2 3.3.1-4 3.3.1-12 3.3.2-1 3.3.2-2
  3.3.4-1 3.3.5-2 3.6.1-1 3.8.1-1 3.8.3-1 3.8.3-2 3.8.3-3 3-8.3-4 3.8.4-1 3.8.4-2 3.8.4-3 3.8.4-4
  3.8.4-5 3.8.4-6 3.9.3-1 3.9.3-2 3.10.1-1 3.10.3-1 3.10.3-2 3.10.4-1 3.10.4-2 3.10.4-4 3.10.4-5
  3.10.4-6 3.12.4-1 3.14.1-1 3.14.4-3 4.1.0-1 4.1.0-2 4.3.1-1 4.3.2-2 4.3.3-2 4.6.0-2 4.6.0-3
  4.7.1-1 4.7.1-2 4.7.1-3 4.7.3-1 4.7.3-2 4.7.3-3 4.7.3-4 4.8.0-1 4.8.0-2 7.0.0-2 7.1.1-1
`
  .trim()
  .split(/\s+/)

/** WebSocket, and wildcards at the head of a filter: one code serves both versions. */
export const asVersion5: readonly string[] = '4.7.2-1 6.0.0-1 6.0.0-2 6.0.0-3 6.0.0-4'.split(' ')

export const notTested: readonly (readonly [reason: string, numbers: readonly string[]])[] = [
  [
    'The gateway sends no message of one client to another, and stores no retained message.',
    `
      3.1.2-5 3.1.2-7 3.1.2-16 3.1.2-17 3.3.1-3 3.3.1-5 3.3.1-6 3.3.1-7 3.3.1-8 3.3.1-9 3.3.1-10
      3.3.1-11 3.3.2-3 3.3.5-1 4.5.0-1 4.6.0-5 4.6.0-6
    `
      .trim()
      .split(/\s+/),
  ],
  [
    'The gateway sends messages of QoS 0 only, and sends none again.',
    `
      2.3.1-4 3.10.4-3 4.4.0-1 4.6.0-1
    `
      .trim()
      .split(/\s+/),
  ],
  [
    'It binds the client alone.',
    `
      2.3.1-2 2.3.1-3 3.1.2-23 3.1.3-7 3.14.4-1 3.14.4-2 4.3.2-1 4.3.3-1 4.5.0-2 4.6.0-4 7.1.2-1
    `
      .trim()
      .split(/\s+/),
  ],
  [
    'It is about servers that connect to others. The bridges are clients by mqtt.js (test/ingest/bridges).',
    `
      7.0.0-1
    `
      .trim()
      .split(/\s+/),
  ],
]
