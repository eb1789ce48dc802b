// canonical-request.ts: the canonical text of a request. Client and service sign and verify the same bytes.

import { createHash } from 'node:crypto'

/** Names in lower case; values in order of arrival. */
export type Headers = Readonly<Record<string, readonly string[] | undefined>>

export type CanonicalInput = {
  method: string
  /** Path and query of the request line. */
  target: string
  headers: Headers
  signedHeaders: readonly string[]
  /** SHA-256 of the body, in hexadecimal. */
  bodyHash: string
  /** Whether `.`, `..` and empty segments of the path are resolved first. */
  normalizePath: boolean
}

export function canonicalRequest(input: CanonicalInput): string {
  const { target, headers, signedHeaders } = input
  const queryAt = target.indexOf('?')
  const path = queryAt < 0 ? target : target.slice(0, queryAt)
  const query = queryAt < 0 ? '' : target.slice(queryAt + 1)
  return [
    input.method,
    canonicalPath(path, input.normalizePath),
    canonicalQuery(query),
    ...signedHeaders.map((name) => `${name}:${(headers[name] ?? []).map(squeeze).join(',')}`),
    '',
    signedHeaders.join(';'),
    input.bodyHash,
  ].join('\n')
}

export function stringToSign(parts: {
  algorithm: string
  date: string
  scope: string
  canonical: string
}): string {
  const hash = createHash('sha256').update(parts.canonical).digest('hex')
  return [parts.algorithm, parts.date, parts.scope, hash].join('\n')
}

/** Without leading and trailing spaces, and with one space for each run of white space. */
function squeeze(value: string): string {
  return value.trim().replace(/\s+/g, ' ')
}

function canonicalPath(path: string, normalize: boolean): string {
  return (normalize ? normalized(path) : path).split('/').map(encode).join('/') || '/'
}

function normalized(path: string): string {
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '' && segment !== '.') kept.push(segment)
  }
  return `/${kept.join('/')}${kept.length > 0 && path.endsWith('/') ? '/' : ''}`
}

function canonicalQuery(query: string): string {
  if (query === '') return ''
  const pairs = query.split('&').map((pair) => {
    const equalsAt = pair.indexOf('=')
    const name = equalsAt < 0 ? pair : pair.slice(0, equalsAt)
    const value = equalsAt < 0 ? '' : pair.slice(equalsAt + 1)
    return [recode(name), recode(value)] as const
  })
  return pairs
    .sort(([name, value], [otherName, otherValue]) => compare(name, otherName) || compare(value, otherValue))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

/** The texts are ASCII, so this is also the order of their bytes. */
function compare(left: string, right: string): number {
  if (left === right) return 0
  return left < right ? -1 : 1
}

/** Encodes what is not encoded, and writes each existing escape in its canonical form. */
function recode(text: string): string {
  return text
    .split(/(%[\dA-Fa-f]{2})/)
    .map((part, index) => {
      if (index % 2 === 0) return encode(part)
      const character = String.fromCharCode(Number.parseInt(part.slice(1), 16))
      return /[\w.~-]/.test(character) ? character : part.toUpperCase()
    })
    .join('')
}

/** RFC 3986: everything except letters, digits and `-._~` becomes an escape of its UTF-8 bytes. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}
