// certificate-watch.ts: the certificates of the config that are in force, and which of them have expired or
// end within 14 days.

import type { Clock } from '../../std/clock.ts'
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

const soonMs = 14 * 86_400_000

export function createCertificateWatch(
  { clock }: { clock: Clock },
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
    },
  }
}
