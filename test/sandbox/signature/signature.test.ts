import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { sandboxAccount, type SandboxAccount } from '../../../src/sandbox/sandbox.ts'
import { Secret } from '../../../src/std/secret.ts'
import {
  batchOf,
  call,
  openSandbox,
  signed,
  telemetry,
  type SignedCall,
  type SignOptions,
} from '../../support/sandbox-world.ts'

const minuteMs = 60_000

type Refusal = {
  name: string
  reason: string
  sign?: Omit<SignOptions, 'account'> & { account?: string; signed_at_minutes?: number }
  /** By header: the pattern that is replaced, and what replaces it. */
  change?: Record<string, [from: string, to: string]>
  remove?: string
  url?: string
  body?: string
}

const refusals = parse(
  readFileSync(join(import.meta.dirname, 'refused-signatures.yaml'), 'utf8'),
) as Refusal[]

/** Signs a payload, changes the call, and returns the answer and the counters. */
async function submit(
  options: SignOptions,
  change: (call: SignedCall) => void = () => undefined,
  setup = {},
) {
  await using world = await openSandbox(setup)
  const request = await signed(`${world.url}/v2/telemetry`, JSON.stringify(telemetry()), world.clock, {
    ...options,
    ...(options.signedAt === undefined ? {} : { signedAt: world.clock.now() + options.signedAt }),
  })
  change(request)
  const answer = await call(request)
  return { answer, stats: world.sandbox.stats() }
}

describe('a request that is signed as section 5 specifies is accepted', () => {
  test.each<[string, SignOptions]>([
    ['with the secret of the account', {}],
    ['almost five minutes ago', { signedAt: -5 * minuteMs + 1000 }],
    ['almost five minutes ahead', { signedAt: 5 * minuteMs - 1000 }],
    ['with other headers signed too', { headers: { 'x-trace': ' a   b ', 'x-provider-key': 'north' } }],
  ])('%s', async (_, options) => {
    expect((await submit(options)).answer.status).toBe(202)
  })

  test('with UTF-8 bytes in a header', async () => {
    const text = Buffer.from('Müller').toString('latin1')
    const { answer } = await submit(
      { headers: { 'x-carrier-name': 'Müller' } },
      (request) => (request.headers['x-carrier-name'] = text),
    )
    expect(answer.status).toBe(202)
  })

  test('with the session token of the account', async () => {
    const account = { ...sandboxAccount, sessionToken: new Secret('token-of-today') }
    const { answer } = await submit({ sessionToken: 'token-of-today' }, undefined, { accounts: [account] })
    expect(answer.status).toBe(202)
  })
})

describe('every other request gets 403 with the reason, and is counted by it', () => {
  const liar = { ...sandboxAccount, secret: new Secret('another secret') }
  const accounts: Record<string, SandboxAccount> = {
    liar,
    stranger: { accessKeyId: 'STRANGER', secret: new Secret('of a stranger') },
  }

  test.each(refusals)('$name: $reason', async ({ reason, sign, change = {}, remove, url = '', body }) => {
    const { account, signed_at_minutes: minutes, ...options } = sign ?? {}
    const signing = {
      ...options,
      ...(account === undefined ? {} : { account: accounts[account] ?? liar }),
      ...(minutes === undefined ? {} : { signedAt: minutes * minuteMs }),
    }
    const { answer, stats } = await submit(signing, (request) => {
      for (const [name, [from, to]] of Object.entries(change))
        request.headers[name] = (request.headers[name] ?? '').replace(new RegExp(from), to)
      if (remove !== undefined) delete request.headers[remove]
      request.url += url
      request.body = body ?? request.body
    })
    expect(answer).toMatchObject({ status: 403, json: { reason } })
    expect(answer.json['errorMessage']).toEqual(expect.stringMatching(/^.{20,}\.$/))
    expect(answer.json['requestId']).toEqual(expect.any(String))
    expect(stats).toMatchObject({
      refusedSignatures: { [reason]: 1 },
      payloadsAccepted: 0,
      byStatus: { 403: 1 },
    })
  })

  test.each([
    ['without the session token of the account', undefined],
    ['with another one', 'token-of-yesterday'],
  ])('%s: session_token', async (_, token) => {
    const account = { ...sandboxAccount, sessionToken: new Secret('token-of-today') }
    const { answer } = await submit(token === undefined ? {} : { sessionToken: token }, undefined, {
      accounts: [account],
    })
    expect(answer).toMatchObject({ status: 403, json: { reason: 'session_token' } })
  })

  test('a batch is refused in the same way as a single payload', async () => {
    await using world = await openSandbox()
    expect((await world.batch(batchOf([telemetry()]), { account: liar })).status).toBe(403)
    expect((await world.batch(batchOf([telemetry()]))).status).toBe(200)
  })

  test('no refusal shows a secret or a token', async () => {
    const account = { ...sandboxAccount, sessionToken: new Secret('token-of-today') }
    const { answer } = await submit({ sessionToken: 'token-of-yesterday' }, undefined, {
      accounts: [account],
    })
    expect(answer.text).not.toMatch(/token-of|protects-nothing/)
  })
})

describe('the clock of the service decides, not ours', () => {
  test('with a wrong service clock valid signatures are refused, and the Date header shows that clock', async () => {
    await using world = await openSandbox({ faults: { clock_offset: '-7m' } })
    const answer = await world.single(telemetry())
    expect(answer).toMatchObject({ status: 403, json: { reason: 'stale_date' } })
    const signedAt = Date.parse(answer.headers.get('date') ?? '')
    expect(Math.abs(signedAt - (world.clock.now() - 7 * minuteMs))).toBeLessThan(1000)
    expect((await world.single(telemetry(), { signedAt })).status).toBe(202)
  })
})
