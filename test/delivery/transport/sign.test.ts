// The signature is verified by independent code: key derivation (AWS4A, SP 800-108 in counter mode),
// canonical request and check are below, on node:crypto alone, and are verified with the AWS vectors.

import { createECDH, createHash, createHmac, createPublicKey, verify } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSigner } from '../../../src/delivery/transport/sign.ts'

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

function publicKeyOf(keys: { accessKeyId: string; secretAccessKey: string }): KeyObject {
  const orderMinusTwo = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc63254fn
  for (let counter = 1; counter < 255; counter += 1) {
    const input = Buffer.concat([
      Buffer.from([0, 0, 0, 1]),
      Buffer.from('AWS4-ECDSA-P256-SHA256\0'),
      Buffer.from(keys.accessKeyId),
      Buffer.from([counter, 0, 0, 1, 0]),
    ])
    const mac = createHmac('sha256', `AWS4A${keys.secretAccessKey}`).update(input).digest('hex')
    const candidate = BigInt(`0x${mac}`)
    if (candidate > orderMinusTwo) continue
    const curve = createECDH('prime256v1')
    curve.setPrivateKey((candidate + 1n).toString(16).padStart(64, '0'), 'hex')
    const point = curve.getPublicKey()
    const x = point.subarray(1, 33).toString('base64url')
    const y = point.subarray(33).toString('base64url')
    return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  }
  throw new Error('no key')
}

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex')

function isValid(headers: Record<string, string>, body: Buffer, path: string, key: KeyObject): boolean {
  const match = /Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]+)$/.exec(
    headers['authorization'] ?? '',
  )
  const [, scope = '', names = '', signature = ''] = match ?? []
  const lines = names.split(';').map((name) => `${name}:${headers[name]?.trim().replace(/\s+/g, ' ')}\n`)
  const canonical = `POST\n${path}\n\n${lines.join('')}\n${names}\n${sha256(body)}`
  const toSign = `AWS4-ECDSA-P256-SHA256\n${headers['x-amz-date']}\n${scope}\n${sha256(canonical)}`
  return verify('sha256', Buffer.from(toSign), key, Buffer.from(signature, 'hex'))
}

describe('a signature', () => {
  test('is accepted by an independent check', async () => {
    const headers = await createSigner(credentials)(request, signingAt)
    expect(isValid(headers, request.body, request.path, publicKeyOf(credentials))).toBe(true)
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
    const headers = await createSigner({ ...credentials, sessionToken: 'token/+=' })(request, signingAt)
    expect(headers['x-amz-security-token']).toBe('token/+=')
    expect(headers['authorization']).toContain('x-amz-security-token')
    expect(isValid(headers, request.body, request.path, publicKeyOf(credentials))).toBe(true)
  })

  test('is refused for another body, path, header or key', async () => {
    const headers = await createSigner(credentials)(request, signingAt)
    const key = publicKeyOf(credentials)
    expect(isValid(headers, Buffer.from('{}'), request.path, key)).toBe(false)
    expect(isValid(headers, request.body, '/v2/telemetry/batch', key)).toBe(false)
    expect(isValid({ ...headers, 'x-provider-key': 'Fleet South' }, request.body, request.path, key)).toBe(
      false,
    )
    const otherKey = publicKeyOf({ ...credentials, secretAccessKey: 'another' })
    expect(isValid(headers, request.body, request.path, otherKey)).toBe(false)
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

  test.each(cases)('%s: our check derives the public key and accepts the signature', (name) => {
    const keys = keysOf(name)
    const key = publicKeyOf(keys)
    const { x, y } = key.export({ format: 'jwk' })
    const expected = JSON.parse(read(name, 'public-key.json')) as { X: string; Y: string }
    expect(Buffer.from(x ?? '', 'base64url').toString('hex')).toBe(expected.X)
    expect(Buffer.from(y ?? '', 'base64url').toString('hex')).toBe(expected.Y)
    const toSign = Buffer.from(read(name, 'header-string-to-sign.txt'))
    const signature = Buffer.from(read(name, 'header-signature.txt'), 'hex')
    expect(verify('sha256', toSign, key, signature)).toBe(true)
  })

  test.each(cases)(
    '%s: a request signed by us with its keys, region set and service is accepted',
    async (name) => {
      const keys = keysOf(name)
      const { region, service, timestamp } = contextOf(name)
      const headers = await createSigner(keys, { region, service })(request, Date.parse(timestamp))
      expect(headers['x-amz-region-set']).toBe(region)
      expect(isValid(headers, request.body, request.path, publicKeyOf(keys))).toBe(true)
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
