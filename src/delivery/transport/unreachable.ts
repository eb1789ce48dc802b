// unreachable.ts: why no answer came, with what a person can check.

import type { EpochMs } from '../../std/clock.ts'
import { codeOf, messageOf } from '../../std/gateway-error.ts'
import { attemptsOf, networkFault } from '../../std/network-faults/network-faults.ts'
import type { Outcome } from '../../domain/outcome.ts'
import { hostOf, portOf } from '../proxy.ts'
import type { TransportOptions } from './transport.ts'

const names = {
  url: 'delivery.base_url',
  ca: 'delivery.tls.ca',
  cert: 'delivery.tls.cert and delivery.tls.key',
  limit: 'delivery.connect_timeout',
  proxy: 'delivery.proxy',
}

/** `at`: the time of our wall clock. */
export function unreachable(
  error: unknown,
  at: EpochMs,
  { baseUrl, tls }: Pick<TransportOptions, 'baseUrl' | 'tls'>,
): Extract<Outcome, { kind: 'unreachable' }> {
  const url = new URL(baseUrl)
  const host = hostOf(url)
  const fault = networkFault(
    error,
    {
      peer: 'the service',
      host,
      address: `${url.hostname}:${portOf(url)}`,
      name: host,
      hasCa: tls.ca !== undefined,
      hasCert: tls.cert !== undefined,
      options: names,
    },
    { at },
  )
  const { cause, tried } = attemptsOf(error)
  const code = codeOf(cause) ?? (cause instanceof Error ? cause.name : '')
  // Messages of OpenSSL end with a line break.
  const detail = tried === '' ? `${code === '' ? '' : `${code}: `}${messageOf(cause).trim()}` : tried
  if (fault === null)
    return { kind: 'unreachable', reason: 'other', message: `the request failed (${detail})` }
  const { reason, why, act } = fault
  return { kind: 'unreachable', reason, message: `${why} (${detail})`, act }
}
