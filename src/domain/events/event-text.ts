// event-text.ts: phrases that several events share.

import { formatDuration } from '../../std/quantity.ts'
import { quote } from '../../std/quote.ts'
import type { GatewayError } from '../../std/gateway-error.ts'
import type { ProviderName } from '../../domain/ids.ts'
import type { Cause } from '../cause.ts'

/** For the conditions of one provider. */
export const providerKey = ({ provider }: { provider: ProviderName }) => provider

/** The own sentences of an error. */
export function ofFault({ fault: { what, why, act } }: { fault: GatewayError }): Cause {
  return { what, why, act }
}

/** The same where its reasons differ, and so do their cures: the code says which one it is. */
export function coded(fault: GatewayError): Cause {
  return { ...ofFault({ fault }), why: `${fault.code}: ${fault.why}`, whyLengthMax: 1000 }
}

/** Names the provider where the config lists several; the only one is called `default`. */
export function forProvider(provider: ProviderName): string {
  return provider === 'default' ? '' : ` for provider ${quote(provider, 64)}`
}

/** A cause within a sentence: the first letter small, no full stop at the end. */
export function clause(text: string): string {
  const inner = text.replace(/\.$/, '')
  return /^[A-Z][a-z ]/.test(inner) ? inner.charAt(0).toLowerCase() + inner.slice(1) : inner
}

/** A cause as a sentence: the first letter large, a full stop at the end. */
export function sentence(text: string): string {
  const full = /[.!?]$/.test(text) ? text : `${text}.`
  return full.charAt(0).toUpperCase() + full.slice(1)
}

export function nextTry(retryInMs: number): string {
  return `Next try in ${formatDuration(retryInMs)}.`
}

/** `offsetMs`: clock of the service minus clock of this machine. */
export function offsetText(offsetMs: number): string {
  return `${formatDuration(Math.abs(offsetMs))} ${offsetMs > 0 ? 'behind' : 'ahead of'}`
}

/** Who sent a message, as far as it is known: the server of a bridge does not say it. */
export function fromText(from: { clientId: string | null; userName: string | null; address: string | null }) {
  const { clientId, userName, address } = from
  const client = clientId === null ? '' : ` of client ${quote(clientId, 64)}`
  return `${client}${userName === null ? '' : `, user ${quote(userName, 64)},`}${address === null ? '' : ` from ${address}`}`
}
