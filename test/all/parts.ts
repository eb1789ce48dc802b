// parts.ts: everything that proves the product, in the order of what it costs. CI runs `npm test`, `npm run check`, and the
// sample of each part that has one; `npm run test:all` runs the whole.

export type Part = {
  name: string
  /** What it tries. */
  what: string
  /** Words for `npm run`. */
  whole: readonly string[]
  /** What ends it as hanging. About three times what it takes on two idle processors. */
  wholeMinutes: number
  /** Small enough for each round of CI; null where `npm test` has one. */
  sample: readonly string[] | null
  sampleMinutes: number
}

/** A checkout that starts, packs and installs; the page in a browser; four attackers. */
const samples = '^Node|a browser|(subscribe-unread|slow-writers|dead-letters|passwords-of-neighbours), '

export const parts: readonly Part[] = [
  {
    name: 'test',
    what: 'all tests that need no network and no root',
    whole: ['test'],
    wholeMinutes: 30,
    sample: null,
    sampleMinutes: 0,
  },
  {
    name: 'check',
    what: 'lint, types, format, unused code, stale documentation',
    whole: ['check'],
    wholeMinutes: 15,
    sample: null,
    sampleMinutes: 0,
  },
  {
    name: 'simulate',
    what: 'the whole daemon under 2,000 seeds',
    whole: ['simulate', '--', '--seeds', '2000', '--jobs', '2', '--reach'],
    wholeMinutes: 90,
    // `npm test` has the first 200.
    sample: ['simulate', '--', '--seed', '201', '--seeds', '1800', '--jobs', '2'],
    sampleMinutes: 20,
  },
  {
    name: 'system',
    what: 'packages, machines, browsers, documents, and tests that take long',
    whole: ['test:system'],
    wholeMinutes: 120,
    sample: ['test:system', '--', 'npm-hosts', 'login-in-browser', 'hostile.test', '-t', samples],
    sampleMinutes: 10,
  },
  {
    name: 'damage',
    what: 'real spools with damaged files',
    whole: ['test:damage'],
    wholeMinutes: 180,
    sample: ['test:damage', '--', '--size', 'small', '--places', '6', '--cells', '4'],
    sampleMinutes: 5,
  },
  {
    name: 'hostile',
    what: 'attackers beside an honest client',
    whole: ['test:hostile'],
    wholeMinutes: 120,
    sample: null,
    sampleMinutes: 5,
  },
  {
    name: 'crash',
    what: 'real daemons that are killed at random points',
    whole: ['test:crash', '--', '--kills', '1000'],
    wholeMinutes: 180,
    sample: null,
    sampleMinutes: 0,
  },
  {
    name: 'bridges',
    what: 'bridges to a real Mosquitto',
    whole: ['test:bridges'],
    wholeMinutes: 40,
    sample: null,
    sampleMinutes: 0,
  },
  {
    name: 'engines',
    what: 'gateways behind NATS and RabbitMQ',
    whole: ['test:engines'],
    wholeMinutes: 120,
    sample: null,
    sampleMinutes: 0,
  },
  {
    name: 'hosts',
    what: 'a checkout with other versions of npm and Node',
    whole: ['test:hosts'],
    wholeMinutes: 90,
    sample: null,
    sampleMinutes: 0,
  },
  {
    name: 'mutations',
    what: 'mistakes in the daemon that tests must notice',
    whole: ['test:mutations'],
    wholeMinutes: 240,
    sample: null,
    sampleMinutes: 0,
  },
]
