// pem.ts: certificates, keys and revocation lists as PEM text: whether a text is one, and whether the parts
// of one TLS setting fit together. The messages never contain a part of a key.

import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { X509Certificate } from 'node:crypto'
import { messageOf } from '../gateway-error.ts'

export type PemKind = 'certificate' | 'key' | 'crl'

const kinds: Record<PemKind, { begin: RegExp; line: string; noun: string }> = {
  certificate: {
    begin: /-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/,
    line: '-----BEGIN CERTIFICATE-----',
    noun: 'a certificate',
  },
  key: {
    begin: /-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----/,
    line: '-----BEGIN PRIVATE KEY-----',
    noun: 'a private key',
  },
  crl: { begin: /-----BEGIN X509 CRL-----/, line: '-----BEGIN X509 CRL-----', noun: 'a revocation list' },
}

export function isPem(text: string): boolean {
  return text.includes('-----BEGIN ')
}

/** What is wrong with a text that should be of this kind; null where nothing is seen. */
export function pemProblem(text: string, kind: PemKind): string | null {
  const { begin, line, noun } = kinds[kind]
  if (begin.test(text)) return null
  const other = Object.values(kinds).find((one) => one.begin.test(text))
  const why = other === undefined ? `it has no line "${line}"` : `it is ${other.noun}`
  // What is not UTF-8 was read as U+FFFD.
  const act = text.includes('\ufffd') ? ': the file is binary (DER), convert it with `openssl`' : ''
  return `must be ${noun} as PEM, or the path of its file: ${why}${act}`
}

type Own<Value> = Value | undefined

export type PemParts = {
  cert?: Own<string>
  key?: Own<string>
  ca?: Own<string>
  crl?: Own<string>
  passphrase?: Own<string>
}

/** Why the parts of one TLS setting cannot be used together; null where they can. */
export function pemPartsProblem({ cert, key, ca, crl, passphrase }: PemParts): string | null {
  const tried = (parts: SecureContextOptions) => {
    try {
      createSecureContext(parts)
      return null
    } catch (error) {
      return reasonOf(error)
    }
  }
  const pair = tried({
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(passphrase === undefined ? {} : { passphrase }),
  })
  if (pair !== null) return `must be a certificate and its key as PEM (${pair})`
  // createSecureContext takes any text as an authority.
  const authority = ca === undefined ? null : certificateFault(ca)
  if (authority !== null) return `must have certificates as PEM of the authorities (${authority})`
  const list = crl === undefined ? null : tried({ ...(ca === undefined ? {} : { ca }), crl })
  return list === null ? null : `must have a revocation list as PEM (${list})`
}

function certificateFault(text: string): string | null {
  try {
    void new X509Certificate(text)
    return null
  } catch (error) {
    return reasonOf(error)
  }
}

/** The messages of OpenSSL name the problem, never the key. These say what to do. */
const reasons: readonly [RegExp, string][] = [
  [/key values mismatch/i, 'the key does not belong to the certificate'],
  [
    /bad decrypt|interrupted or cancelled|bad password/i,
    'the key is encrypted, and its passphrase is missing or wrong',
  ],
  [
    /key too small/i,
    'its key is too small, and OpenSSL does not accept it: use RSA with 2048 bits or more, or an elliptic curve',
  ],
]

function reasonOf(error: unknown): string {
  const message = messageOf(error)
  return reasons.find(([pattern]) => pattern.test(message))?.[1] ?? message
}
