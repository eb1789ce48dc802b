// The sandbox checks the signatures, on node:crypto alone; test/sandbox/vectors.test.ts verifies it with the AWS vectors.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSigner } from '../../../src/delivery/transport/sign.ts'
import { registerAccounts } from '../../../src/sandbox/signature/accounts.ts'
import {
  checkSignature,
  ingestionRules,
  type SignatureRules,
} from '../../../src/sandbox/signature/signature.ts'
import { Secret } from '../../../src/std/secret.ts'

const credentials = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
}
const signingAt = Date.UTC(2026, 10, 21, 2, 0, 0)

const request = {
  method: 'POST' as const,
  protocol: 'http:',
  hostname: '127.0.0.1',
  host: '127.0.0.1:8081',
  path: '/prefix/v2/telemetry/batch',
  headers: { 'content-type': 'application/json', 'x-provider-key': 'Fleet  North' },
  body: Buffer.from('{"batchId":"…"}'),
}

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')

/** What the sandbox says of a request with these headers; it shares nothing with the signer. */
function checked(
  headers: Record<string, string>,
  { body = request.body, path = request.path, account = credentials, rules = {} }: Changes = {},
) {
  const { accessKeyId, secretAccessKey, sessionToken } = account
  const token = sessionToken === undefined ? {} : { sessionToken: new Secret(sessionToken) }
  const accounts = registerAccounts([{ accessKeyId, secret: new Secret(secretAccessKey), ...token }])
  const arrived = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]))
  const check = checkSignature(
    { method: 'POST', target: path, headers: arrived, bodyHash: sha256(body) },
    accounts,
    { ...ingestionRules, ...rules },
    Date.parse(headers['x-amz-date']!.replace(/(....)(..)(..T..)(..)/, '$1-$2-$3:$4:')),
  )
  return check.kind === 'signed' ? 'signed' : check.reason
}

type Changes = {
  body?: Buffer
  path?: string
  account?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string }
  rules?: Partial<SignatureRules>
}

describe('a signature', () => {
  test('is accepted by an independent check', async () => {
    const headers = await createSigner(credentials)(request, signingAt)
    expect(checked(headers)).toBe('signed')
  })

  test('covers host with its port, type, provider key, region set, date and the hash of the body', async () => {
    const headers = await createSigner(credentials)(request, signingAt)
    expect(headers).toMatchObject({
      host: '127.0.0.1:8081',
      'x-amz-region-set': '*',
      'x-amz-date': '20261121T020000Z',
      'x-amz-content-sha256': sha256(request.body),
    })
    expect(headers['authorization']).toMatch(
      /^AWS4-ECDSA-P256-SHA256 Credential=AKIDEXAMPLE\/20261121\/execute-api\/aws4_request, /,
    )
    expect(headers['authorization']).toContain(
      'SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-region-set;x-provider-key',
    )
  })

  test('differs at every attempt', async () => {
    const sign = createSigner(credentials)
    const one = await sign(request, signingAt)
    const other = await sign(request, signingAt)
    expect(one['authorization']).not.toBe(other['authorization'])
  })

  test('covers the session token of temporary credentials', async () => {
    const account = { ...credentials, sessionToken: 'token/+=' }
    const headers = await createSigner(account)(request, signingAt)
    expect(headers['x-amz-security-token']).toBe('token/+=')
    expect(checked(headers, { account })).toBe('signed')
  })

  test('is refused for another body, path, header or key', async () => {
    const headers = await createSigner(credentials)(request, signingAt)
    expect(checked(headers, { body: Buffer.from('{}') })).toBe('body_hash')
    expect(checked(headers, { path: '/v2/telemetry/batch' })).toBe('signature')
    expect(checked({ ...headers, 'x-provider-key': 'Fleet South' })).toBe('signature')
    expect(checked(headers, { account: { ...credentials, secretAccessKey: 'another' } })).toBe('signature')
  })

  test('leaves no secret in the headers', async () => {
    const headers = await createSigner(credentials)(request, signingAt)
    expect(JSON.stringify(headers)).not.toContain(credentials.secretAccessKey)
  })
})

const vectors = join(
  process.env['TELEMETRY_TEST_DATA'] ?? '/nonexistent',
  'sigv4a-vectors/tests/aws-signing-test-suite/v4a',
)

describe.skipIf(!existsSync(vectors))('the AWS vectors (from TELEMETRY_TEST_DATA)', () => {
  // Two of the forty vectors have no expected files.
  const cases = (existsSync(vectors) ? readdirSync(vectors) : []).filter((name) =>
    existsSync(join(vectors, name, 'header-signature.txt')),
  )
  const read = (name: string, file: string) => readFileSync(join(vectors, name, file), 'utf8')

  test.each(cases)(
    '%s: a request signed by us with its keys, region set and service is accepted',
    async (name) => {
      const keys = keysOf(name)
      const { region, service, timestamp } = contextOf(name)
      const headers = await createSigner(keys, { region, service })(request, Date.parse(timestamp))
      expect(headers['x-amz-region-set']).toBe(region)
      expect(checked(headers, { account: keys, rules: { regionSet: region, service } })).toBe('signed')
    },
  )

  type Context = {
    region: string
    service: string
    timestamp: string
    credentials: { access_key_id: string; secret_access_key: string; token?: string }
  }

  function contextOf(name: string): Context {
    return JSON.parse(read(name, 'context.json')) as Context
  }

  function keysOf(name: string) {
    const {
      access_key_id: accessKeyId,
      secret_access_key: secretAccessKey,
      token,
    } = contextOf(name).credentials
    return { accessKeyId, secretAccessKey, ...(token === undefined ? {} : { sessionToken: token }) }
  }
})
