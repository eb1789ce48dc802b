// signature.ts: verifies that a request is signed with SigV4a by a registered account (ingestion-api.md 5).
// It uses node:crypto alone and shares nothing with the gateway's signer, which it judges.
//
// Each refusal has a reason of its own, because a bare 403 does not help to find the cause:
//
//   missing           no Authorization header
//   algorithm         signed, but not with SigV4a
//   malformed         the Authorization header or x-amz-date cannot be read
//   unsigned_header   host, x-amz-date, x-amz-region-set or the session token is missing or not signed
//   region_set        x-amz-region-set is not `*`
//   scope             the credential scope names another date or service
//   stale_date        x-amz-date is more than five minutes from the clock of the service
//   unknown_account   the access key id is not registered
//   session_token     missing, not expected, or another one
//   body_hash         x-amz-content-sha256 is not the hash of the body
//   signature         everything else is right: the secret differs, or the request was changed on the way

import { createHash, timingSafeEqual, verify } from 'node:crypto'
import type { EpochMs } from '../../std/clock.ts'
import { formatDuration } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { Account, Accounts } from './accounts.ts'
import { canonicalRequest, stringToSign, type Headers } from './canonical-request.ts'
import { algorithm } from './public-key.ts'

type SignatureRefusal =
  | 'missing'
  | 'algorithm'
  | 'malformed'
  | 'unsigned_header'
  | 'region_set'
  | 'scope'
  | 'stale_date'
  | 'unknown_account'
  | 'session_token'
  | 'body_hash'
  | 'signature'

export type SignatureCheck =
  { kind: 'signed'; account: Account } | { kind: 'refused'; reason: SignatureRefusal; message: string }

export type SignedRequest = { method: string; target: string; headers: Headers; bodyHash: string }

export type SignatureRules = {
  service: string
  regionSet: string
  normalizePath: boolean
  toleranceMs: number
}

/** The rules of section 5 of the specification. */
export const ingestionRules: SignatureRules = {
  service: 'execute-api',
  regionSet: '*',
  normalizePath: true,
  toleranceMs: 300_000,
}

type Authorization = {
  accessKeyId: string
  /** `date/service/aws4_request`; the scope of SigV4a names no region. */
  scope: string
  scopeDate: string
  scopeService: string
  signedHeaders: readonly string[]
  signature: Buffer
}

export function checkSignature(
  request: SignedRequest,
  accounts: Accounts,
  rules: SignatureRules,
  now: EpochMs,
): SignatureCheck {
  const authorization = readAuthorization(request.headers)
  if ('kind' in authorization) return authorization
  const { signedHeaders } = authorization

  const unsigned = unsignedHeader(request.headers, signedHeaders)
  if (unsigned) return refused('unsigned_header', unsigned)

  const wrong = wrongPlaceOrTime(request.headers, authorization, rules, now)
  if (wrong) return wrong

  const account = accounts.get(authorization.accessKeyId)
  if (!account)
    return refused(
      'unknown_account',
      `No account with the access key id ${quote(authorization.accessKeyId, 64)} is registered.`,
    )
  const token = wrongToken(request.headers, account)
  if (token) return refused('session_token', token)

  const declaredHash = request.headers['x-amz-content-sha256']?.[0]
  if (declaredHash !== undefined && declaredHash.trim().toLowerCase() !== request.bodyHash)
    return refused('body_hash', 'x-amz-content-sha256 is not the SHA-256 of the body that arrived.')

  const text = stringToSign({
    algorithm,
    date: dateOf(request.headers),
    scope: authorization.scope,
    canonical: canonicalRequest({ ...request, signedHeaders, normalizePath: rules.normalizePath }),
  })
  if (
    !verify(
      'sha256',
      Buffer.from(text),
      { key: account.publicKey, dsaEncoding: 'der' },
      authorization.signature,
    )
  )
    return refused(
      'signature',
      'The signature does not match. The secret differs, or the request was changed after signing.',
    )
  return { kind: 'signed', account }
}

function refused(reason: SignatureRefusal, message: string): SignatureCheck & { kind: 'refused' } {
  return { kind: 'refused', reason, message }
}

function readAuthorization(headers: Headers): Authorization | (SignatureCheck & { kind: 'refused' }) {
  const header = headers['authorization']?.[0]?.trim()
  if (!header) return refused('missing', 'The request has no Authorization header: it is not signed.')
  const spaceAt = header.indexOf(' ')
  const name = spaceAt < 0 ? header : header.slice(0, spaceAt)
  if (name !== algorithm) return refused('algorithm', `Sign with ${algorithm}, not with ${quote(name, 40)}.`)

  const parts = new Map<string, string>()
  for (const part of header.slice(name.length).split(',')) {
    const equalsAt = part.indexOf('=')
    const key = part.slice(0, Math.max(0, equalsAt)).trim()
    if (equalsAt < 0 || parts.has(key))
      return refused('malformed', 'The Authorization header cannot be read.')
    parts.set(key, part.slice(equalsAt + 1).trim())
  }
  const credential = parts.get('Credential')?.split('/') ?? []
  const [scopeDate, scopeService, terminator] = credential.slice(-3)
  const accessKeyId = credential.slice(0, -3).join('/')
  if (!accessKeyId || !scopeDate || !scopeService || terminator !== 'aws4_request')
    return refused('malformed', 'Credential must be ACCESS_KEY_ID/DATE/SERVICE/aws4_request.')

  const signedHeaders = parts.get('SignedHeaders')?.split(';') ?? []
  const ordered = signedHeaders.every(
    (name, index) =>
      name !== '' && name === name.toLowerCase() && (index === 0 || name > (signedHeaders[index - 1] ?? '')),
  )
  if (signedHeaders.length === 0 || !ordered)
    return refused(
      'malformed',
      'SignedHeaders must be names in lower case, sorted, each once, with semicolons between.',
    )

  const signature = parts.get('Signature') ?? ''
  if (!/^(?:[\da-f]{2}){8,80}$/i.test(signature))
    return refused('malformed', 'Signature must be an ECDSA signature in hexadecimal DER.')
  const scope = `${scopeDate}/${scopeService}/${terminator}`
  return {
    accessKeyId,
    scope,
    scopeDate,
    scopeService,
    signedHeaders,
    signature: Buffer.from(signature, 'hex'),
  }
}

function unsignedHeader(headers: Headers, signedHeaders: readonly string[]): string | null {
  for (const name of ['host', 'x-amz-date', 'x-amz-region-set']) {
    if (headers[name] === undefined) return `The request has no ${name} header.`
    if (!signedHeaders.includes(name)) return `${name} must be one of the SignedHeaders.`
  }
  if (headers['x-amz-security-token'] !== undefined && !signedHeaders.includes('x-amz-security-token'))
    return 'x-amz-security-token must be one of the SignedHeaders.'
  const absent = signedHeaders.find((name) => headers[name] === undefined)
  return absent === undefined ? null : `The signed header ${quote(absent, 60)} did not arrive.`
}

function wrongPlaceOrTime(
  headers: Headers,
  authorization: Authorization,
  rules: SignatureRules,
  now: EpochMs,
) {
  const regionSet = (headers['x-amz-region-set'] ?? []).map((value) => value.trim()).join(',')
  if (regionSet !== rules.regionSet)
    return refused(
      'region_set',
      `x-amz-region-set must be ${rules.regionSet}, found ${quote(regionSet, 60)}.`,
    )

  const date = dateOf(headers)
  const signedAt = epochOf(date)
  if (signedAt === null)
    return refused('malformed', `x-amz-date must be like 20250131T235959Z, found ${quote(date, 40)}.`)
  if (authorization.scopeDate !== date.slice(0, 8))
    return refused(
      'scope',
      `The credential scope is of ${quote(authorization.scopeDate, 40)}, x-amz-date is ${date}.`,
    )
  if (authorization.scopeService !== rules.service)
    return refused(
      'scope',
      `The credential scope must name ${rules.service}, found ${quote(authorization.scopeService, 40)}.`,
    )
  const offMs = signedAt - now
  if (Math.abs(offMs) > rules.toleranceMs) {
    const side = offMs < 0 ? 'behind' : 'ahead of'
    return refused(
      'stale_date',
      `x-amz-date ${date} is ${formatDuration(Math.abs(offMs))} ${side} the clock of the service.`,
    )
  }
  return null
}

function dateOf(headers: Headers): string {
  return headers['x-amz-date']?.[0]?.trim() ?? ''
}

/** Null where the text is not a time such as `20250131T235959Z`. */
function epochOf(date: string): EpochMs | null {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date)
  if (!match) return null
  const [, year, month, day, hour, minute, second] = match
  const epoch = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
  return Number.isNaN(epoch) ? null : epoch
}

function wrongToken(headers: Headers, account: Account): string | null {
  const token = headers['x-amz-security-token']?.[0]
  if (account.sessionToken === null)
    return token === undefined ? null : 'The account has no session token, but the request carries one.'
  if (token === undefined) return 'The account needs x-amz-security-token; the request has none.'
  return sameText(token.trim(), account.sessionToken.reveal())
    ? null
    : 'x-amz-security-token is not the registered one.'
}

function sameText(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(left), digest(right))
}
