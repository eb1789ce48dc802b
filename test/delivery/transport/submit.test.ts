import type { Socket } from 'node:net'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { ProviderOptions } from '../../../src/delivery/delivery-options.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'
import { startRawService } from '../../support/raw-service.ts'
import { acceptedBoth, batchText, createTransportWorld } from '../../support/transport-world.ts'

/** What the raw server does after it has read the whole request. */
type Act = (socket: Socket) => void

const answer =
  (status: string, body: string | Buffer, headers = ''): Act =>
  (socket) => {
    const length = Buffer.byteLength(body)
    socket.write(`HTTP/1.1 ${status}\r\ncontent-length: ${length}\r\n${headers}\r\n`)
    socket.write(body)
  }

const json = (status: string, body: unknown, headers = '') => answer(status, JSON.stringify(body), headers)

let act: Act
let requests: string[]
let url: string

beforeEach(async () => {
  const answered = new Map<Socket, number>()
  requests = []
  const service = await startRawService({
    onData({ socket, received }) {
      const heads = received().toString('latin1').split(batchText).slice(0, -1)
      if (heads.length === (answered.get(socket) ?? 0)) return
      answered.set(socket, heads.length)
      requests.push(`${heads.at(-1)}${batchText}`)
      act(socket)
    },
  })
  url = service.url
})

const world = createTransportWorld()

async function submit(options: Partial<ProviderOptions> & { stop?: AbortSignal } = {}): Promise<Outcome> {
  return (await world.submit(options.baseUrl ?? url, options)).outcome
}

/** Several submissions over the same connections. */
function openTransport(options: Partial<ProviderOptions>) {
  const transport = world.open(url, options)
  onTestFinished(() => transport.close())
  return (changes: Parameters<typeof world.send>[1]) => world.send(transport, changes)
}

type Row = [name: string, act: Act, expected: Partial<Record<string, unknown>>]

const page = '<html><body>Service\r\nbusy</body></html>'
const hostile: Row[] = [
  [
    'the usual answer',
    json('200 OK', acceptedBoth),
    { kind: 'answered', accepted: 'all', failed: [], deviations: [], requestId: 'r-1' },
  ],
  [
    '200 with HTML',
    answer('200 OK', page),
    { kind: 'unreadable', status: 200, message: expect.stringMatching(/not a JSON object: "<html>/) },
  ],
  [
    '200 cut off in the body',
    (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{"accepted":['),
    { kind: 'unreadable', message: expect.stringMatching(/truncated/) },
  ],
  ['204', (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'), { kind: 'unexpected', status: 204 }],
  ['302', answer('302 Found', '', 'location: http://127.0.0.1:1/\r\n'), { kind: 'unexpected', status: 302 }],
  [
    '404',
    json('404 Not Found', { message: 'no such path' }),
    { kind: 'unexpected', status: 404, message: 'no such path' },
  ],
  [
    '400 with field details',
    json('400 Bad Request', {
      requestId: 'r-4',
      message: 'bad',
      validationErrorDetails: [{ field: 'batchId', message: 'missing' }],
    }),
    {
      kind: 'refused',
      status: 400,
      requestId: 'r-4',
      message: 'bad; batchId: missing',
      details: [{ field: 'batchId', message: 'missing' }],
    },
  ],
  ['401', json('401 Unauthorized', {}), { kind: 'unauthorized', status: 401 }],
  [
    '403 with its id in a header',
    json('403 Forbidden', { message: 'Signature\u001b[31m\nwrong' }, 'x-amzn-RequestId: h-1\r\n'),
    { kind: 'unauthorized', status: 403, requestId: 'h-1', message: 'Signature [31m wrong' },
  ],
  [
    '403 of a gateway of AWS that has no such path',
    json('403 Forbidden', { message: 'Missing Authentication Token' }),
    { kind: 'unexpected', status: 403, message: expect.stringMatching(/no such path/) },
  ],
  [
    '403 of 10 MB',
    answer('403 Forbidden', Buffer.alloc(10_000_000, 'x')),
    { kind: 'unauthorized', status: 403 },
  ],
  ['409', json('409 Conflict', { message: 'known' }), { kind: 'repeated', message: 'known' }],
  [
    '429 with Retry-After in seconds',
    json('429 Too Many Requests', {}, 'retry-after: 7\r\n'),
    { kind: 'unavailable', status: 429, retryAfterMs: 7000 },
  ],
  [
    '429 with Retry-After as a date',
    json(
      '429 Too Many Requests',
      {},
      'date: Sat, 21 Nov 2026 02:00:00 GMT\r\nretry-after: Sat, 21 Nov 2026 02:01:30 GMT\r\n',
    ),
    { kind: 'unavailable', retryAfterMs: 90_000 },
  ],
  [
    '500 with HTML',
    answer('500 Internal Server Error', page),
    { kind: 'unavailable', status: 500, message: expect.stringMatching(/<html><body>Service busy/) },
  ],
  ['closed without an answer', (socket) => socket.end(), { kind: 'unreachable', reason: 'reset' }],
  ['reset', (socket) => socket.resetAndDestroy(), { kind: 'unreachable', reason: 'reset' }],
]

describe('every answer is an outcome', () => {
  test.each(hostile)('%s', async (_name, does, expected) => {
    act = does
    expect(await submit()).toMatchObject(expected)
    expect(Object.prototype).not.toHaveProperty('accepted')
  })
})

describe('an attempt ends in time', () => {
  test.each<[string, Act]>([
    ['no answer', () => undefined],
    ['headers and no body', (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n')],
    [
      'a trickle of bytes',
      (socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n')
        const timer = setInterval(() => (socket.destroyed ? clearInterval(timer) : socket.write(' ')), 5)
      },
    ],
  ])('%s: timeout, and the connection is closed', async (_name, does) => {
    act = does
    expect(await submit({ timeoutMs: 150 })).toEqual({
      kind: 'unreachable',
      reason: 'timeout',
      message: 'no answer within 150 ms',
    })
  })

  test('a 500 whose body never ends is a 500', async () => {
    act = (socket) => socket.write('HTTP/1.1 500 X\r\ncontent-length: 10\r\n\r\n')
    expect(await submit({ timeoutMs: 150 })).toMatchObject({ kind: 'unavailable', status: 500 })
  })

  test('a request that undici refuses takes no connection from those after it', async () => {
    act = json('200 OK', acceptedBoth)
    const submitOne = openTransport({ maxInFlight: 2, timeoutMs: 2000 })
    for (let times = 0; times < 5; times += 1)
      expect(
        await submitOne({
          credentials: { accessKeyId: 'A', secretAccessKey: 'B', sessionToken: 'line\nbreak' },
        }),
      ).toMatchObject({
        outcome: {
          kind: 'unreachable',
          reason: 'other',
          message: expect.stringMatching(/x-amz-security-token/),
        },
        written: false,
      })
    expect(await submitOne({})).toMatchObject({ outcome: { kind: 'answered' } })
  })

  test('a request that waits for a connection ends in time, and those after it wait for none', async () => {
    let free = () => {}
    act = (socket) => (free = () => json('200 OK', acceptedBoth)(socket))
    const submitOne = openTransport({ maxInFlight: 1 })
    const running = submitOne({ timeoutMs: 20_000 })
    await expect.poll(() => requests.length).toBe(1)
    expect(await submitOne({ timeoutMs: 150 })).toMatchObject({
      outcome: {
        kind: 'unreachable',
        reason: 'timeout',
        message: expect.stringMatching(/no connection was free/),
      },
      written: false,
    })
    act = json('200 OK', acceptedBoth)
    expect(await submitOne({ timeoutMs: 5000 })).toMatchObject({ outcome: { kind: 'answered' } })
    free()
    expect(await running).toMatchObject({ outcome: { kind: 'answered' } })
    expect(requests).toHaveLength(2)
  })

  test('aborted by stop', async () => {
    const stop = new AbortController()
    act = () => stop.abort()
    expect(await submit({ stop: stop.signal })).toEqual({ kind: 'aborted' })
    expect(await submit({ stop: stop.signal })).toEqual({ kind: 'aborted' })
    expect(requests).toHaveLength(1)
  })
})

describe('no answer, with its reason', () => {
  test('nothing listens', async () => {
    expect(await submit({ baseUrl: 'http://127.0.0.1:1' })).toMatchObject({
      kind: 'unreachable',
      reason: 'refused',
    })
  })

  test('a name that does not exist', async () => {
    // .invalid never resolves (RFC 6761), with or without a network.
    const outcome = await submit({ baseUrl: 'http://ingest.invalid' })
    expect(outcome).toMatchObject({
      kind: 'unreachable',
      reason: 'dns',
      message: expect.stringMatching(/host name "ingest\.invalid" (does not exist|cannot be resolved)/),
    })
  })
})

describe('what is sent', () => {
  test('path under the prefix, type, length, host with port, and the provider key only where configured', async () => {
    act = json('200 OK', acceptedBoth)
    await submit({ baseUrl: `${url}/prefix`, providerKey: 'North' })
    await submit()
    expect(requests[0]).toMatch(/^POST \/prefix\/v2\/telemetry\/batch HTTP\/1.1\r\n/)
    expect(requests[0]).toMatch(/content-type: application\/json\r\n/i)
    expect(requests[0]).toContain(`content-length: ${batchText.length}\r\n`)
    expect(requests[0]).toContain(`host: ${new URL(url).host}\r\n`)
    expect(requests[0]).toMatch(/x-provider-key: North\r\n/i)
    expect(requests[0]?.endsWith(`\r\n\r\n${batchText}`)).toBe(true)
    expect(requests[1]).toMatch(/^POST \/v2\/telemetry\/batch /)
    expect(requests[1]).not.toMatch(/x-provider-key/i)
    expect(requests[1]).not.toMatch(/transfer-encoding|expect/i)
  })
})
