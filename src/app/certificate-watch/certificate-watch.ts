// certificate-watch.ts: reports certificates of the config that have expired or end within 14 days: at the
// start, after a reload, and once an hour. An event is emitted where that changes, and not each hour.

import type { CancelTimer, Clock } from '../../std/clock.ts'
import {
  certificateState,
  certificateText,
  certificatesOf,
  type CertificateSections,
  type CertificateState,
  type ConfigCertificate,
} from '../../config/config.ts'
import type { Emit } from '../../domain/event.ts'

export type CertificateWatch = {
  /** Those of these sections are in force now. */
  use(sections: Partial<CertificateSections>): void
  certificates(): readonly ConfigCertificate[]
  stop(): void
}

const checkEveryMs = 3_600_000
const soonMs = 14 * 86_400_000

export function startCertificateWatch(
  { clock, emit }: { clock: Clock; emit: Emit },
  { ingest, ops, delivery }: CertificateSections,
): CertificateWatch {
  let sections = { ingest, ops, delivery }
  let certificates = certificatesOf(sections)
  /** What was reported, by certificate. */
  let reported = new Map<string, string>()
  let cancel: CancelTimer = () => {}
  check()
  return {
    use(next) {
      sections = { ...sections, ...next }
      certificates = certificatesOf(sections)
      cancel()
      check()
    },
    certificates: () => certificates,
    stop: () => cancel(),
  }

  function check(): void {
    const now = clock.now()
    const found = new Map<string, string>()
    for (const certificate of certificates) {
      const state: CertificateState = certificateState(certificate, now, soonMs)
      if (state === 'ok') continue
      const name = `${certificate.use} ${certificate.name}`
      const about = `${state} ${certificate.notAfterMs}`
      found.set(name, about)
      if (reported.get(name) === about) continue
      const detail = certificateText(certificate, now)
      emit({ kind: 'certificate_expires', certificate: name, state, detail })
    }
    for (const name of reported.keys())
      if (!found.has(name)) emit({ kind: 'certificate_renewed', certificate: name })
    reported = found
    cancel = clock.after(checkEveryMs, check)
  }
}
