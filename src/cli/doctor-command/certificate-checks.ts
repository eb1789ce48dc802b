// certificate-checks.ts: the certificates in the config, one line for each: until when it is valid, and
// whether the address of its listener is one of its names.

import {
  certificateCure,
  certificatesOf,
  certificateState,
  certificateText,
  type CertificateState,
  type Config,
} from '../../config/config.ts'
import { systemClock } from '../../std/clock.ts'
import type { Finding } from '../check-command/connection-findings.ts'

const states: Record<CertificateState, Finding['state']> = {
  ok: 'ok',
  ends_soon: 'warning',
  not_yet_valid: 'failed',
  expired: 'failed',
}

export function checkCertificates(config: Config): Finding[] {
  const now = systemClock.now()
  return certificatesOf(config).map((certificate) => {
    const state = states[certificateState(certificate, now)]
    const { otherHost } = certificate
    const note =
      otherHost === null
        ? ''
        : ` Its names do not contain ${otherHost}, so devices must connect by one of its names.`
    const what = certificateText(certificate, now) + note
    return { name: 'certificate', state, what, ...(state === 'ok' ? {} : { act: certificateCure }) }
  })
}
