// certificate-watch.ts: the certificates of the config that are in force, and which of them have expired or
// end within 14 days. And the client certificates of devices, by the last connection of each client: those
// that end within 30 days, or ended in the last 30. Certificates that live for weeks only are renewed by a
// program in the last third of their life: that third counts in place of the 30 days.

import type { Clock, EpochMs } from '../../std/clock.ts'
import {
  certificateState,
  certificateText,
  certificatesOf,
  type CertificateSections,
  type ConfigCertificate,
} from '../../config/config.ts'
import type { State } from '../../domain/condition-state.ts'

export type CertificateWatch = {
  /** Those of these sections are in force now. */
  use(sections: Partial<CertificateSections>): void
  certificates(): readonly ConfigCertificate[]
  states(): Iterable<State>
}

const dayMs = 86_400_000
const soonMs = 14 * dayMs
const clientSoonMs = 30 * dayMs
const clientsShown = 100

/** A client of the broker, and when the certificate of its last connection is valid. */
type CertifiedClient = { clientId: string; certificate: { startsAt: EpochMs; endsAt: EpochMs } | null }
type Deps = { clock: Clock; clients: () => Iterable<CertifiedClient> }

export function createCertificateWatch(
  { clock, clients }: Deps,
  { ingest, ops, delivery }: CertificateSections,
): CertificateWatch {
  let sections = { ingest, ops, delivery }
  let certificates = certificatesOf(sections)
  return {
    use(next) {
      sections = { ...sections, ...next }
      certificates = certificatesOf(sections)
    },
    certificates: () => certificates,
    *states() {
      const now = clock.now()
      for (const one of certificates) {
        const state = certificateState(one, now, soonMs)
        const about = { certificate: `${one.use} ${one.name}`, detail: certificateText(one, now) }
        if (state !== 'ok') yield { code: 'CERTIFICATE_EXPIRES', ...about, endsSoon: state === 'ends_soon' }
      }
      yield* clientStates(clients(), now)
    },
  }
}

function clientStates(clients: Iterable<CertifiedClient>, now: EpochMs): State[] {
  const found = []
  for (const { clientId, certificate } of clients) {
    if (certificate === null) continue
    const { startsAt, endsAt } = certificate
    if (Math.abs(endsAt - now) < Math.min(clientSoonMs, (endsAt - startsAt) / 3))
      found.push({ clientId, endsAt })
  }
  if (found.length === 0) return []
  found.sort((a, b) => a.endsAt - b.endsAt)
  const expired = found.filter(({ endsAt }) => endsAt <= now).length
  const shown = found.slice(0, clientsShown)
  return [{ code: 'CLIENT_CERTIFICATES_EXPIRE', clients: shown, total: found.length, expired }]
}
