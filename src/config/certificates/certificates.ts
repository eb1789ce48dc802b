// certificates.ts: the certificates in the config with their dates: of listeners and their client
// authorities, of ops, of bridges and of delivery. Of a chain or a bundle the certificate counts that ends
// first.

import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { zonedTime } from '../../std/clock.ts'
import type { DeliveryConfig } from '../../delivery/config.ts'
import { listenUrlText, type IngestConfig } from '../../ingest/config.ts'
import { opsUrlText, type OpsConfig } from '../../ops/config.ts'
import type { ConfigWarning } from '../config-warnings.ts'

export type ConfigCertificate = {
  use: 'listener' | 'client_ca' | 'ops' | 'bridge' | 'delivery'
  /** Of the listener its URL, of a bridge or provider its name. */
  name: string
  /** Names of the certificate that ends first. */
  subject: string
  notBeforeMs: number
  notAfterMs: number
  /** The address of a listener that is none of the names of its certificate. Null: it is, or is no name. */
  otherHost: string | null
}

export type CertificateSections = { ingest: IngestConfig; ops: OpsConfig; delivery: DeliveryConfig }
type Texts = [use: ConfigCertificate['use'], name: string, pem: string | undefined, host?: string][]

const dayMs = 86_400_000
/** `check` and `doctor` name a certificate that ends within this time. */
const noticeMs = 30 * dayMs

export function certificatesOf({ ingest, ops, delivery }: CertificateSections): ConfigCertificate[] {
  const listeners = ingest.broker.listeners.flatMap(({ url, tls }): Texts => {
    const { host } = url
    const name = listenUrlText(url)
    return [
      ['listener', name, tls?.cert, host],
      ['client_ca', name, tls?.client_ca],
    ]
  })
  const texts: Texts = [
    ...listeners,
    ['ops', opsUrlText(ops.listen, 'https'), ops.tls?.cert, ops.listen.host],
    ...ingest.bridges.map(({ name, tls }): Texts[number] => ['bridge', name, tls?.cert]),
    ['delivery', 'delivery.tls', delivery.tls.cert],
    ...(delivery.providers ?? []).map(({ name, tls }): Texts[number] => ['delivery', name, tls?.cert]),
  ]
  return texts.flatMap(([use, name, pem, host]) => {
    const [leaf, ...others] = certificatesIn(pem ?? '')
    if (leaf === undefined) return []
    const first = others.reduce((a, b) => (dateOf(b.validTo) < dateOf(a.validTo) ? b : a), leaf)
    return {
      use,
      name,
      subject: first.subject.replaceAll('\n', ', ').slice(0, 200),
      notBeforeMs: Math.max(...[leaf, ...others].map((each) => dateOf(each.validFrom))),
      notAfterMs: dateOf(first.validTo),
      otherHost: host === undefined || isNamed(leaf, host) ? null : host,
    }
  })
}

/** What cannot be read as a certificate is a problem of the config, or a file with other parts. */
function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  return blocks.flatMap((block) => {
    try {
      return [new X509Certificate(block)]
    } catch {
      return []
    }
  })
}

/** Names and addresses that clients may use for a server with this certificate, without patterns. */
export function namesOfCertificate(pem: string): string[] {
  const [leaf] = certificatesIn(pem)
  return (leaf?.subjectAltName ?? '').split(', ').flatMap((text) => {
    const name = /^(?:DNS|IP Address):(.+)$/.exec(text)?.[1]
    return name === undefined || name.startsWith('*') ? [] : name
  })
}

function dateOf(text: string): number {
  return Date.parse(text)
}

/** Devices use other names for an address for all, and for loopback. */
function isNamed(certificate: X509Certificate, host: string): boolean {
  if (isIP(host) === 0) return certificate.checkHost(host) !== undefined
  if (['0.0.0.0', '::', '127.0.0.1', '::1'].includes(host)) return true
  return certificate.checkIP(host) !== undefined
}

export type CertificateState = 'ok' | 'ends_soon' | 'expired' | 'not_yet_valid'

export function certificateState(
  { notBeforeMs, notAfterMs }: ConfigCertificate,
  now: number,
  soonMs = noticeMs,
): CertificateState {
  if (notAfterMs <= now) return 'expired'
  if (notBeforeMs > now) return 'not_yet_valid'
  return notAfterMs - now <= soonMs ? 'ends_soon' : 'ok'
}

const uses: Record<ConfigCertificate['use'], (name: string) => string> = {
  listener: (name) => `the listener ${name}`,
  client_ca: (name) => `the client authority (client_ca) of ${name}`,
  ops: (name) => `the ops port ${name}`,
  bridge: (name) => `the bridge ${name}`,
  delivery: (name) => `the connection to the service (${name})`,
}

/** One sentence. */
export function certificateText(certificate: ConfigCertificate, now: number): string {
  const { use, name, subject, notBeforeMs, notAfterMs } = certificate
  const about = `The certificate of ${uses[use](name)} (${subject})`
  const state = certificateState(certificate, now)
  if (state === 'expired') return `${about} has expired at ${zonedTime(notAfterMs)}.`
  if (state === 'not_yet_valid') return `${about} is not valid before ${zonedTime(notBeforeMs)}.`
  return `${about} is valid until ${zonedTime(notAfterMs)}.`
}

export const certificateCure =
  'Renew it in the file that the config names. The gateway takes it over within seconds (`reload` does it at once). ' +
  'Where RESTART_NEEDED names an option of its section, it may need the restart.'

/** Certificates that have expired, are not valid yet, or end within 30 days. */
export function certificateWarnings(sections: CertificateSections, now: number): ConfigWarning[] {
  return certificatesOf(sections)
    .filter((certificate) => certificateState(certificate, now) !== 'ok')
    .map((certificate) => ({ what: certificateText(certificate, now), act: certificateCure }))
}
