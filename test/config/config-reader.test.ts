import { describe, expect, test } from 'vitest'
import { fine, problemsOf } from '../support/config-world.ts'

describe('all problems of a config are reported at once, with their position', () => {
  test('several problems are reported together, in the order of the file', async () => {
    const problems = await problemsOf(`
delivery:
  max_in_flight: 0
  timeout: 5
  size: 64MegaBytes
  retries: 3
sources:
  - name: a
    topics: t
    unknown: acept
`)
    expect(problems).toEqual([
      '3:3 delivery.max_in_flight must be 1 to 64, found 0. Batches sent at once.',
      '4:3 delivery.timeout must be a duration such as 30s or 5m, found 5. Per request.',
      '5:3 delivery.size must be a size such as 512KiB, 64MiB or 20GiB, found "64MegaBytes".',
      '6:3 unknown option "retries" in delivery. Known options: max_in_flight, timeout, size, verify, key, credentials, errors.',
      '8:5 sources[0].topic is required. Which messages it reads.',
      '9:5 unknown option "topics" in sources[0]. Did you mean "topic"?',
      '10:5 sources[0].unknown must be one of accept, quarantine, ignore, found "acept". Did you mean "accept"?',
    ])
  })

  test.each([
    ['delivery: { max_in_flight: 65 }', 'must be 1 to 64, found 65.'],
    ['delivery: { max_in_flight: 1.5 }', 'must be 1 to 64, found 1.5.'],
    ['delivery: { max_in_flight: many }', 'must be 1 to 64, found "many".'],
    ['delivery: { max_in_flight: [1] }', 'must be 1 to 64, found a list.'],
    ['delivery: { max_in_flight: }', 'must be 1 to 64, found nothing.'],
    ['delivery: { timeout: 90m }', 'must be 100 ms to 1 min, found 1 h 30 min.'],
    [
      'delivery: { timeout: 10 parsecs }',
      'must be a duration such as 250ms, 30s, 5m or 1h, found "10 parsecs".',
    ],
    ['delivery: { size: 1 }', 'must be a size such as 64MiB or 20GiB, found 1.'],
    ['delivery: { verify: yes }', 'must be true or false, found "yes".'],
    [
      'delivery: { credentials: { source: enviroment } }',
      'must be "environment" or "keys", found "enviroment". Did you mean "environment"?',
    ],
    ['delivery: { credentials: { source: keys } }', 'delivery.credentials.id is required.'],
    [
      'delivery: { credentials: { source: keys, id: x, secret: y } }',
      'unknown option "secret" in delivery.credentials.',
    ],
    [
      'delivery: { errors: { Validation: 5m } }',
      'must be a list such as [30s, 5m] or "delivered", found "5m".',
    ],
    ['delivery: { errors: { Validation: [5 m, soon] } }', 'delivery.errors.Validation[1] must be a duration'],
    ['delivery: []', 'delivery must be a map, found an empty list.'],
    ['- a\n- b', 'must be a map, found a list.'],
    ['', 'sources is required.'],
    ['sources: []', 'sources must be a list of at least 1 entry, found an empty list.'],
    ['sources: [{ name: "", topic: t }]', 'sources[0].name must be non-empty text, found "".'],
    [
      'sources: [{ name: a, topic: t, path: { pth: x } }]',
      'unknown option "pth" in sources[0].path. Did you mean "path"?',
    ],
    ['__proto__: { a: 1 }', 'unknown option "__proto__"'],
    ['delivery: { constructor: 1 }', 'unknown option "constructor" in delivery.'],
  ])('%s: %s', async (text, message) => {
    expect((await problemsOf(text)).join('\n')).toContain(message)
  })

  test('a duplicate key is reported together with the other problems', async () => {
    expect(await problemsOf('delivery:\n  verify: true\n  verify: 1\nsources: 7\n')).toEqual([
      '3:3 this key occurs twice in one map. Keep one of them.',
      '3:3 delivery.verify must be true or false, found 1.',
      '4:1 sources must be a list of at least 1 entry, found 7.',
    ])
  })

  test.each([
    ['sources:\n  - name: "a\n', 3],
    ['a: 1\n---\nb: 2\n', 2],
    ['sources:\n\t- a\n', 2],
    ['delivery: { verify: true\nsources: []\n', 2],
    ['delivery: *nowhere\n', 1],
    ['delivery: !js/function x\n', 1],
    ['delivery: ]\n', 1],
  ])('broken syntax is reported with its line: %j', async (text, line) => {
    const problems = await problemsOf(text)
    expect(problems.length).toBeGreaterThan(0)
    expect(problems[0]).toMatch(new RegExp(`^${line}:`))
  })

  test('a file with a hundred broken lines gives at most 20 problems', async () => {
    const text = Array.from({ length: 100 }, (_, index) => `k${index}: ]`).join('\n')
    expect((await problemsOf(text)).length).toBeLessThanOrEqual(20)
  })

  test('a problem inside an alias has the position of its anchor', async () => {
    const problems = await problemsOf(`
sources:
  - &base { name: a, topic: t, unknown: nope }
  - *base
  - { <<: *base, name: c }
`)
    expect(problems.map((problem) => problem.split(' ', 2).join(' '))).toEqual([
      '3:32 sources[0].unknown',
      '3:32 sources[1].unknown',
      '5:5 sources[2].unknown',
    ])
  })

  test('aliases that would expand to gigabytes are refused without expanding them', async () => {
    const levels = Array.from({ length: 20 }, (_, level) =>
      level === 0
        ? 'l0: &l0 [x, x, x, x, x, x, x, x, x, x]'
        : `l${level}: &l${level} [${Array(10)
            .fill(`*l${level - 1}`)
            .join(', ')}]`,
    )
    expect(await problemsOf(levels.join('\n'))).toEqual([expect.stringContaining('expand to more than')])
  })

  test('a problem that only a section detects has a position too', async () => {
    const check = () => [
      { path: ['sources', 1, 'name'], message: 'must be a name of its own, found "a" twice.' },
    ]
    const text = 'sources:\n  - { name: a, topic: t }\n  - { name: a, topic: u }\n'
    expect(await problemsOf(text, { check })).toEqual([
      '3:7 sources[1].name must be a name of its own, found "a" twice.',
    ])
  })

  test('control characters in a value are escaped in the message', async () => {
    const problems = await problemsOf('delivery: { timeout: "\\e[2J\\u202e5m" }\n' + fine)
    expect(problems.join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })
})
