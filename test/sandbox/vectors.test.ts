// The published test vectors of SigV4a. They are third-party data: read where TELEMETRY_TEST_DATA names a
// copy.

import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { registerAccounts } from '../../src/sandbox/signature/accounts.ts'
import { canonicalRequest, stringToSign } from '../../src/sandbox/signature/canonical-request.ts'
import { algorithm, derivePublicKey } from '../../src/sandbox/signature/public-key.ts'
import { checkSignature } from '../../src/sandbox/signature/signature.ts'
import { Secret } from '../../src/std/secret.ts'

const shared = process.env['TELEMETRY_TEST_DATA'] ?? ''
const folder = join(shared, 'sigv4a-vectors/tests/aws-signing-test-suite/v4a')
const present = shared !== '' && existsSync(folder)
const cases = present ? readdirSync(folder).sort() : []
/** These two have a request, but nothing that is expected of it. */
const without = ['get-vanilla-query-order-key', 'get-vanilla-query-order-value']
/** The token is added after signing, so it is not signed: we refuse that. */
const tokenAfterSigning = 'post-sts-header-after'
type Context = {
  credentials: { access_key_id: string; secret_access_key: string; token?: string }
  normalize: boolean
  region: string
  service: string
  timestamp: string
}

function read(name: string, file: string): string {
  return readFileSync(join(folder, name, file), 'utf8').replaceAll('\r\n', '\n')
}

function requestOf(text: string) {
  const bodyAt = text.indexOf('\n\n')
  const head = bodyAt < 0 ? text : text.slice(0, bodyAt)
  const [requestLine = '', ...lines] = head
    .replace(/\n(?=\s)/g, ' ')
    .split('\n')
    .filter((line) => line !== '')
  const [, method = '', target = ''] = /^(\S+) (.*) HTTP\/1\.1$/.exec(requestLine) ?? []
  const headers: Record<string, string[]> = {}
  for (const line of lines) {
    const colonAt = line.indexOf(':')
    const name = line.slice(0, colonAt).toLowerCase()
    headers[name] = [...(headers[name] ?? []), line.slice(colonAt + 1)]
  }
  const body = bodyAt < 0 ? '' : text.slice(bodyAt + 2).replace(/\n+$/, '')
  return { method, target, headers, bodyHash: createHash('sha256').update(body).digest('hex') }
}

describe.skipIf(!present)(
  'the sandbox agrees with the test vectors of AWS (needs TELEMETRY_TEST_DATA)',
  () => {
    test('there are 40 cases, and the omitted ones are listed', () => {
      expect(cases).toHaveLength(40)
      expect(cases.filter((name) => !existsSync(join(folder, name, 'header-signed-request.txt')))).toEqual(
        without,
      )
    })

    test.each(cases.filter((name) => !without.includes(name)))('%s', (name) => {
      const context = JSON.parse(read(name, 'context.json')) as Context
      const { access_key_id: accessKeyId, secret_access_key: secret, token } = context.credentials
      const key = derivePublicKey(accessKeyId, secret).export({ format: 'jwk' })
      const expectedKey = JSON.parse(read(name, 'public-key.json')) as { X: string; Y: string }
      expect(Buffer.from(key.x ?? '', 'base64url').toString('hex')).toBe(expectedKey.X)
      expect(Buffer.from(key.y ?? '', 'base64url').toString('hex')).toBe(expectedKey.Y)

      const request = requestOf(read(name, 'header-signed-request.txt'))
      const authorization = request.headers['authorization']?.[0] ?? ''
      const signedHeaders = /SignedHeaders=([^,]+)/.exec(authorization)?.[1]?.split(';') ?? []
      const canonical = canonicalRequest({ ...request, signedHeaders, normalizePath: context.normalize })
      expect(canonical).toBe(read(name, 'header-canonical-request.txt').trimEnd())
      const date = request.headers['x-amz-date']?.[0] ?? ''
      const scope = `${date.slice(0, 8)}/${context.service}/aws4_request`
      expect(stringToSign({ algorithm, date, scope, canonical })).toBe(
        read(name, 'header-string-to-sign.txt').trimEnd(),
      )

      const accounts = registerAccounts([
        {
          accessKeyId,
          secret: new Secret(secret),
          ...(token === undefined ? {} : { sessionToken: new Secret(token) }),
        },
      ])
      const rules = {
        service: context.service,
        regionSet: context.region,
        normalizePath: context.normalize,
        toleranceMs: 0,
      }
      const now = Date.parse(context.timestamp)
      const checked = checkSignature(request, accounts, rules, now)
      expect(checked).toMatchObject(
        name === tokenAfterSigning
          ? { kind: 'refused', reason: 'unsigned_header' }
          : { kind: 'signed', account: { accessKeyId } },
      )

      // The same with the path changed after signing must not pass, or the check above proves nothing.
      const tampered = { ...request, target: `${request.target}x` }
      expect(checkSignature(tampered, accounts, rules, now).kind).toBe('refused')
    })
  },
)
