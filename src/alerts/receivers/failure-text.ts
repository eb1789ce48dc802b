// failure-text.ts: why a receiver was not reached, in words, from the error of Node.

import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { attemptsOf, networkFault } from '../../std/network-faults/network-faults.ts'

/** `options`: where host and port are configured. */
export type ReceiverPlace = { host: string; address: string; hasCa: boolean; options: string }

export function failureOf(
  error: unknown,
  { host, address, hasCa, options: url }: ReceiverPlace,
): { why: string; act: string } {
  const options = {
    url,
    ca: '`ca` of the receiver',
    cert: 'a certificate',
    limit: '`timeout` of the receiver',
  }
  const place = { peer: 'the receiver', host, address, name: host, hasCa, hasCert: false }
  const fault = networkFault(error, { ...place, options: { ...options, proxy: 'delivery.proxy' } })
  const { cause, tried } = attemptsOf(error)
  const detail = tried === '' ? messageOf(cause) : tried
  if (fault === null) return { why: detail, act: `Check ${url}, and that it runs.` }
  const act = fault.reason === 'proxy' ? `${fault.act} Or set \`proxy: none\` for this receiver.` : fault.act
  return { why: `${fault.why} (${detail})`, act }
}

/** Whether a connection broke, so that it is not known what arrived before. */
export function isBroken(error: unknown): boolean {
  return brokenCodes.test(codeOf(error) ?? '')
}

const brokenCodes =
  /^(ECONNRESET|UND_ERR_SOCKET|EPIPE|ETIMEDOUT|ECONNECTION|ESOCKET|ABORT_ERR|UND_ERR_ABORTED|HPE_\w+)$/
