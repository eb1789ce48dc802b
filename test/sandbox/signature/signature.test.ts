import { describe, expect, test } from 'vitest'
import { sandboxAccount } from '../../../src/sandbox/sandbox.ts'
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

const header = (name: string, change: (value: string) => string) => (request: SignedCall) => {
  request.headers[name] = change(request.headers[name] ?? '')
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
      header('x-carrier-name', () => text),
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
  const stranger = { accessKeyId: 'STRANGER', secret: new Secret('of a stranger') }
  const liar = { ...sandboxAccount, secret: new Secret('another secret') }
  const authorization = (from: string | RegExp, to: string) =>
    header('authorization', (value) => value.replace(from, to))
  const unsign = (name: string) =>
    header('authorization', (value) => value.replace(new RegExp(`(?<==|;)${name};|;${name}(?=,)`), ''))

  test.each<[string, string, SignOptions, ((call: SignedCall) => void)?]>([
    ['no signature', 'missing', {}, (request) => delete request.headers['authorization']],
    ['SigV4 instead of SigV4a', 'algorithm', {}, authorization('AWS4-ECDSA-P256-SHA256', 'AWS4-HMAC-SHA256')],
    ['a bearer token', 'algorithm', {}, header('authorization', () => 'Bearer abc')],
    [
      'an Authorization header of nonsense',
      'malformed',
      {},
      header('authorization', () => 'AWS4-ECDSA-P256-SHA256 hello'),
    ],
    ['a scope without its end', 'malformed', {}, authorization('/aws4_request', '')],
    ['no signature in the header', 'malformed', {}, authorization(/Signature=.*/, 'Signature=')],
    ['a signature that is no hexadecimal', 'malformed', {}, authorization(/Signature=../, 'Signature=zz')],
    ['signed headers out of order', 'malformed', {}, authorization(/SignedHeaders=/, 'SignedHeaders=zz;')],
    ['the wrong secret', 'signature', { account: liar }],
    ['an unknown account', 'unknown_account', { account: stranger }],
    ['a region of its own', 'region_set', { region: 'eu-central-1' }],
    [
      'the region set changed after signing',
      'region_set',
      {},
      header('x-amz-region-set', () => '*,eu-central-1'),
    ],
    ['another service', 'scope', { service: 'lambda' }],
    ['a scope of another day', 'scope', {}, authorization(/\/\d{8}\//, '/20200101/')],
    ['a date more than five minutes ago', 'stale_date', { signedAt: -5 * minuteMs - 1000 }],
    ['a date more than five minutes ahead', 'stale_date', { signedAt: 5 * minuteMs + 2000 }],
    ['a date that is none', 'malformed', {}, header('x-amz-date', () => 'yesterday')],
    ['no date', 'unsigned_header', {}, (request) => delete request.headers['x-amz-date']],
    ['no region set', 'unsigned_header', {}, (request) => delete request.headers['x-amz-region-set']],
    ['the host not signed', 'unsigned_header', {}, unsign('host')],
    ['the region set not signed', 'unsigned_header', {}, unsign('x-amz-region-set')],
    [
      'a signed header that did not arrive',
      'unsigned_header',
      { headers: { 'x-a': '1' } },
      (request) => delete request.headers['x-a'],
    ],
    ['a session token that the account has not', 'session_token', { sessionToken: 'some' }],
    ['a token added after signing', 'unsigned_header', {}, header('x-amz-security-token', () => 'x')],
    [
      'a body changed on the way',
      'body_hash',
      {},
      (request) => (request.body = `${request.body.toString()} `),
    ],
    ['a body and its hash changed', 'signature', {}, changeBodyAndHash],
    [
      'a signed header changed on the way',
      'signature',
      { headers: { 'x-a': '1' } },
      header('x-a', () => '2'),
    ],
    ['another path', 'signature', {}, (request) => (request.url += '/batch')],
    ['a query that was not signed', 'signature', {}, (request) => (request.url += '?a=b')],
    [
      'the signature of another request',
      'signature',
      {},
      authorization(/Signature=.*/, `Signature=${'30'.repeat(70)}`),
    ],
  ])('%s: %s', async (_, reason, options, change) => {
    const { answer, stats } = await submit(options, change)
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

function changeBodyAndHash(request: SignedCall): void {
  request.body = '{}'
  request.headers['x-amz-content-sha256'] = '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
}
