// webhook-signature.ts: the signature of a webhook: HMAC-SHA256 with the shared secret over the time and the
// body, so that neither can be changed, and a recorded request is recognised by its time (docs/alerts.md).

import { createHmac } from 'node:crypto'
import type { Secret } from '../../std/secret.ts'

/** `seconds`: Unix time, as in the header `gateway-timestamp`. */
export function signatureOf(secret: Secret, seconds: number, body: string): string {
  return `v1=${createHmac('sha256', secret.reveal()).update(`${seconds}.${body}`).digest('hex')}`
}
