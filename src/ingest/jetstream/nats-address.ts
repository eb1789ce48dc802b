// nats-address.ts: addresses of NATS as texts, without user and password.

import type { JetStreamOptions, NatsAddress } from './types.ts'

export function addressText({ host, port }: NatsAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** As a person writes them. */
export function urlsText({ addresses, tls }: Pick<JetStreamOptions, 'addresses' | 'tls'>): string {
  const scheme = schemeOf({ tls })
  return addresses.map((address) => `${scheme}://${addressText(address)}`).join(', ')
}

export function schemeOf({ tls }: Pick<JetStreamOptions, 'tls'>): string {
  return tls === null ? 'nats' : 'nats+tls'
}
