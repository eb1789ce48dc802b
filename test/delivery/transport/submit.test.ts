import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import type { ProviderOptions } from '../../../src/delivery/delivery-options.ts'
import type { Outcome } from '../../../src/domain/outcome.ts'
import { httpAnswer, startRawService } from '../../support/raw-service.ts'
import { acceptedBoth, batchText, createTransportWorld } from '../../support/transport-world.ts'

/** What the raw server does after it has read the whole request. */
type Act = (socket: Socket) => void

const accept: Act = (socket) => socket.write(httpAnswer(200, acceptedBoth))

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

type Case = {
  name: string
  status?: number
  body?: unknown
  headers?: string
  cut?: string
  reset?: boolean
  outcome: Record<string, unknown>
}

const cases = parse(readFileSync(join(import.meta.dirname, 'submit.cases.yaml'), 'utf8')) as Case[]

const actOf = ({ status = 200, body, headers, cut, reset }: Case): Act => {
  if (reset === true) return (socket) => socket.resetAndDestroy()
  if (cut !== undefined) return (socket) => socket.end(cut)
  return (socket) => socket.write(httpAnswer(status, body, headers))
}

const textLike = (pattern: string): unknown => expect.stringMatching(pattern)
const matching = (value: unknown): unknown =>
  typeof value === 'string' && /^\/.*\/$/.test(value) ? textLike(value.slice(1, -1)) : value

describe('every answer is an outcome', () => {
  test.each(cases)('$name', async ({ outcome, ...one }) => {
    act = actOf({ outcome, ...one })
    const expected = Object.entries(outcome).map(([name, value]) => [name, matching(value)])
    expect(await submit()).toMatchObject(Object.fromEntries(expected) as object)
    expect(Object.prototype).not.toHaveProperty('accepted')
  })

  test('also where an error has a body of 10 MB', async () => {
    act = (socket) => socket.write(httpAnswer(403, 'x'.repeat(10_000_000)))
    expect(await submit()).toMatchObject({ kind: 'unauthorized', status: 403 })
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
    act = accept
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
    act = (socket) => (free = () => accept(socket))
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
    act = accept
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
    act = accept
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
