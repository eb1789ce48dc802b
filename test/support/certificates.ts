// certificates.ts: creates X.509 certificates: an authority, and certificates that it signs, with any name and dates.
// Node signs bytes and reads certificates, but does not create them. This file writes the DER that is needed.

import { generateKeyPairSync, randomBytes, sign, X509Certificate } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

export type Certificate = { cert: string; key: string }

export type Authority = {
  /** PEM of the authority, for clients that trust it. */
  ca: string
  issue(options?: IssueOptions): Certificate
  /** PEM of a revocation list with these certificates. */
  revoke(certificates: readonly Certificate[]): string
}

export type IssueOptions = {
  /** DNS names, or addresses as `ip:127.0.0.1`. */
  names?: readonly string[]
  from?: Date
  until?: Date
  /** What it may be used for; without it, for all. */
  purpose?: 'serverAuth' | 'clientAuth'
  /** An RSA key of this size in place of an elliptic curve. */
  rsaBits?: number
  /** The digest of its signature. */
  digest?: 'sha1'
}

const dayMs = 86_400_000

export function createAuthority(name = 'Test Authority'): Authority {
  const keys = newKeys()
  const subject = nameOf(name)
  const extensions = [extension('2.5.29.19', sequence(der(0x01, Buffer.from([0xff]))), true)]
  const ca = certificate({
    issuer: subject,
    subject,
    publicKey: keys.publicKey,
    signer: keys.privateKey,
    extensions,
  })
  return {
    ca,
    issue({ names = ['localhost', 'ip:127.0.0.1'], from, until, purpose, rsaBits, digest } = {}) {
      const own = rsaBits === undefined ? newKeys() : generateKeyPairSync('rsa', { modulusLength: rsaBits })
      const extensions = [extension('2.5.29.17', sequence(...names.map(alternativeName)))]
      if (purpose !== undefined)
        extensions.push(extension('2.5.29.37', sequence(objectId(purposes[purpose]))))
      const cert = certificate({
        issuer: subject,
        subject: nameOf(names[0] ?? 'nobody'),
        publicKey: own.publicKey,
        signer: keys.privateKey,
        extensions,
        ...(from && { from }),
        ...(until && { until }),
        ...(digest && { digest }),
      })
      return { cert, key: own.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
    },
    revoke: (certificates) => revocationList(subject, keys.privateKey, certificates),
  }
}

const purposes = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' }

function newKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
}

type Parts = {
  issuer: Buffer
  subject: Buffer
  publicKey: KeyObject
  signer: KeyObject
  extensions: readonly Buffer[]
  from?: Date
  until?: Date
  digest?: 'sha1'
}

/** RFC 5280, section 4.1. */
function certificate(parts: Parts): string {
  const { from = new Date(Date.now() - dayMs), until = new Date(Date.now() + dayMs) } = parts
  const { digest = 'sha256' } = parts
  const ecdsa = sequence(objectId(digest === 'sha1' ? '1.2.840.10045.4.1' : '1.2.840.10045.4.3.2'))
  const toSign = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([0x01]), randomBytes(8)])),
    ecdsa,
    parts.issuer,
    sequence(time(from), time(until)),
    parts.subject,
    parts.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...parts.extensions)),
  )
  const whole = sequence(toSign, ecdsa, bits(sign(digest, toSign, parts.signer)))
  return pem('CERTIFICATE', whole)
}

/** RFC 5280, section 5.1. */
function revocationList(issuer: Buffer, signer: KeyObject, certificates: readonly Certificate[]): string {
  const ecdsaWithSha256 = sequence(objectId('1.2.840.10045.4.3.2'))
  const now = time(new Date(Date.now() - 1000))
  const revoked = certificates.map(({ cert }) => {
    const serial = Buffer.from(new X509Certificate(cert).serialNumber, 'hex')
    return sequence(der(0x02, serial), now)
  })
  const toSign = sequence(
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    issuer,
    now,
    time(new Date(Date.now() + dayMs)),
    ...(revoked.length === 0 ? [] : [sequence(...revoked)]),
  )
  return pem('X509 CRL', sequence(toSign, ecdsaWithSha256, bits(sign('sha256', toSign, signer))))
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}

function nameOf(commonName: string): Buffer {
  return sequence(der(0x31, sequence(objectId('2.5.4.3'), der(0x0c, Buffer.from(commonName)))))
}

function alternativeName(name: string): Buffer {
  return name.startsWith('ip:')
    ? der(0x87, Buffer.from(name.slice(3).split('.').map(Number)))
    : der(0x82, Buffer.from(name))
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  const isCritical = critical ? [der(0x01, Buffer.from([0xff]))] : []
  return sequence(objectId(id), ...isCritical, der(0x04, value))
}

/** GeneralizedTime only from 2050 on, as the RFC requires. */
function time(date: Date): Buffer {
  const text = date.toISOString().replace(/\D/g, '').slice(0, 14)
  const late = date.getUTCFullYear() >= 2050 || date.getUTCFullYear() < 1950
  return late ? der(0x18, Buffer.from(`${text}Z`)) : der(0x17, Buffer.from(`${text.slice(2)}Z`))
}

function bits(bytes: Buffer): Buffer {
  return der(0x03, Buffer.concat([Buffer.from([0]), bytes]))
}

function sequence(...members: readonly Buffer[]): Buffer {
  return der(0x30, Buffer.concat(members))
}

function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const bytes = [first * 40 + second]
  for (const arc of rest) {
    const septets = [arc & 0x7f]
    for (let more = arc >>> 7; more > 0; more >>>= 7) septets.unshift((more & 0x7f) | 0x80)
    bytes.push(...septets)
  }
  return der(0x06, Buffer.from(bytes))
}

function der(tag: number, content: Buffer): Buffer {
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content])
  const size = [length >>> 8, length & 0xff].filter((byte, index) => index === 1 || byte > 0)
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length, ...size]), content])
}
